//! Which planning documents a role reads.

/// The planning documents of `role`, in the order they are compiled.
///
/// Role names are matched exactly. A role that is not in the table reads what everybody needs: the
/// conventions and the roadmap.
pub fn documents_for(role: &str) -> &'static [&'static str] {
    match role {
        "architect" | "lead" => {
            &["ARCHITECTURE.md", "STACK.md", "CONVENTIONS.md", "ROADMAP.md", "REQUIREMENTS.md"]
        }
        "senior" | "dev" => &["CONVENTIONS.md", "STACK.md", "ROADMAP.md"],
        "qa" | "security" => &["CONVENTIONS.md", "REQUIREMENTS.md"],
        _ => &["CONVENTIONS.md", "ROADMAP.md"],
    }
}

#[cfg(test)]
mod tests {
    use super::documents_for;

    #[test]
    fn leaders_read_everything_and_only_they_read_the_architecture() {
        assert_eq!(documents_for("architect"), documents_for("lead"));
        assert_eq!(documents_for("lead").len(), 5);
        for role in ["senior", "dev", "qa", "security", ""] {
            assert!(!documents_for(role).contains(&"ARCHITECTURE.md"), "{role}");
        }
    }

    #[test]
    fn a_role_name_is_matched_exactly() {
        assert_eq!(documents_for("Lead"), documents_for("nobody"));
    }
}
