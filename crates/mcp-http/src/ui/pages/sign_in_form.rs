//! The form to sign in.

use super::head::head;
use crate::console_output::name;
use maud::{DOCTYPE, Markup, html};

/// Renders the form, with a message if signing in has failed.
pub(in super::super) fn render(message: Option<&str>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head("Sign in", false))
            body {
                main id="main" class="sign-in" {
                    h1 { "CoreTools" }
                    form method="post" action="/ui/sign-in" {
                        p id="hint" class="faint" {
                            "With the token that your agent uses: " code { (name()) " token new" } " makes one."
                        }
                        @if let Some(message) = message {
                            p class="said bad" role="alert" { (message) }
                        }
                        label for="token" { "Token" }
                        input id="token" name="token" type="password" required autocomplete="current-password"
                            aria-describedby="hint" autofocus;
                        button { "Sign in" }
                    }
                }
            }
        }
    }
}
