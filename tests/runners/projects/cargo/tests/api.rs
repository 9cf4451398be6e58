#[test]
fn adds_from_outside() {
    assert_eq!(sample::add(2, 3), 5);
}

mod nested {
    #[test]
    fn prints_what_looks_like_a_result() {
        println!("test fake::one ... ok\ntest result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
    }
}
