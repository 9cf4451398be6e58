//! Writes the corpus of secrets and harmless texts as files, one for each text, for a comparison with other scanners:
//! `cargo run -p redaction --example write_corpus -- FOLDER`.

#![allow(clippy::disallowed_methods, reason = "the example writes files where its caller says")]

#[path = "../corpus/text.rs"]
#[allow(unreachable_pub, dead_code, reason = "tests have the same module, and look at the secrets alone")]
mod text;

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let Some(folder) = env::args_os().nth(1) else { return Ok(()) };
    let write = |kind: &str, texts: Vec<String>| {
        let folder = Path::new(&folder).join(kind);
        fs::create_dir_all(&folder)?;
        (1..).zip(texts).try_for_each(|(number, text): (u32, _)| {
            fs::write(folder.join(format!("{number:03}.txt")), text + "\n")
        })
    };
    write("secrets", text::secrets().into_iter().map(|sample| sample.text).collect())?;
    write("harmless", text::harmless())
}

#[test]
fn the_corpus_is_written() {
    assert_eq!((text::secrets().len(), text::harmless().len()), (200, 200));
    assert!(text::secrets().iter().all(|sample| !sample.secret.is_empty()));
}
