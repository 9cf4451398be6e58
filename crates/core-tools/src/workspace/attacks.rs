#![cfg(unix)]
//! smoke
use super::*;
#[test]
fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    let ws = Workspace::new([dir.path()]).unwrap();
    for ws in [ws.clone(), ws.walking()] {
        ws.locate("notes/a/today.md").unwrap().write(b"hello\n").unwrap();
        assert_eq!(ws.locate("notes/a/today.md").unwrap().metadata().unwrap().size, 6);
        let e = ws.locate("../elsewhere").unwrap().metadata().unwrap_err();
        assert!(e.is_outside(), "{e}");
        println!("{}", ws.locate("notes/a/toady.md").unwrap().open_read().unwrap_err());
        println!("{}", ws.locate("note/a/today.md").unwrap().open_read().unwrap_err());
        println!("{}", ws.locate("notes").unwrap().open_read().unwrap_err());
    }
}
