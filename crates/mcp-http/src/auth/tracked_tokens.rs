//! The file of tokens while the server runs: what others may have written adds no token, and takes each one away.

use super::token_file::{self, TokenFileError};
use super::tokens::ActiveTokens;
use crate::limits::caller_limits::CallerLimits;
use error_causes::chain;
use server_setup::trusted_text::{TrackedFile, TrackedText, repaired, tracked};
use std::path::{Path, PathBuf};

/// The file of tokens, read again when it changes.
#[derive(Debug)]
pub(crate) struct TrackedTokens {
    file: TrackedFile,
    /// The tokens of the last text that was trusted.
    trusted: ActiveTokens,
    /// The tokens that appeared in the file, or were changed in it, while others could write to it. They stay out for the life of the server, also
    /// if a command copies them into a new file.
    forged: ActiveTokens,
}

impl TrackedTokens {
    /// Reads the file at `path` for the first time, and returns its tokens as well.
    ///
    /// # Errors
    /// The file is not trusted, cannot be read, or something in it is wrong.
    pub(crate) fn open(
        path: PathBuf,
        defaults: &CallerLimits,
    ) -> Result<(Self, ActiveTokens), TokenFileError> {
        let mut file = tracked(path.clone());
        match file.read() {
            Ok(TrackedText::Trusted(text)) => {
                let parsed = token_file::parse(&path, &text)?;
                let tokens = ActiveTokens::from_file(&path, parsed, defaults, &ActiveTokens::default())?;
                Ok((Self { file, trusted: tokens.clone(), forged: ActiveTokens::default() }, tokens))
            }
            Ok(
                TrackedText::Unchanged { cause: source, .. } | TrackedText::Distrusted { cause: source, .. },
            )
            | Err(source) => Err(TokenFileError::Read { path, source }),
        }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Reads the file. A token that is in `before` too is not revoked by that.
    ///
    /// # Errors
    /// The file cannot be read, or the owner made a mistake in it.
    pub(crate) fn load(
        &mut self,
        defaults: &CallerLimits,
        before: &ActiveTokens,
    ) -> Result<ActiveTokens, TokenFileError> {
        let read = self.file.read();
        let path = self.file.path();
        let parse =
            |text: &str| ActiveTokens::from_file(path, token_file::parse(path, text)?, defaults, before);
        match read.map_err(|source| TokenFileError::Read { path: path.to_owned(), source })? {
            TrackedText::Trusted(text) => {
                let mut tokens = parse(&text)?;
                // A forged token stays out even of a trusted file, because a command may have copied it into that file.
                tokens.remove(&self.forged);
                self.trusted = tokens.clone();
                Ok(tokens)
            }
            TrackedText::Unchanged { cause, is_repaired } => {
                let repaired = repaired(is_repaired);
                tracing::warn!("the tokens {} are the same as before: {cause}{repaired}", path.display());
                Ok(self.trusted.retained(before))
            }
            TrackedText::Distrusted { text, cause, is_repaired } => {
                let (path, repaired) = (path.display(), repaired(is_repaired));
                match parse(&text) {
                    Ok(tokens) => {
                        tracing::error!(
                            "the tokens {path} were changed and are not trusted: {cause}{repaired}. A token that was \
                             removed or changed ends, and a new one is not used"
                        );
                        // The unknown tokens are noted before the list shrinks: a token that was only removed is not
                        // forged.
                        self.forged.add_unknown(&tokens, &self.trusted);
                        self.trusted = self.trusted.retained(&tokens);
                        Ok(self.trusted.clone())
                    }
                    Err(error) => {
                        tracing::error!(
                            "the tokens {path} were changed, are not trusted ({cause}{repaired}) and cannot be read: \
                             {}. No token is used until a new file is in its place",
                            chain(&error)
                        );
                        // The text cannot be compared with the tokens before, so that no token can be told from a
                        // forged one.
                        self.trusted = ActiveTokens::default();
                        Ok(ActiveTokens::default())
                    }
                }
            }
        }
    }
}
