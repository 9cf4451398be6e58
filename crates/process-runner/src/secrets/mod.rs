//! Hides secret values in everything that leaves a run.

mod encodings;
mod matcher;
mod redactor;
#[cfg(test)]
mod tests;
mod values;

pub use redactor::StreamRedactor;
pub use values::SecretValues;
