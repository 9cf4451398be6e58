/// Understood.
pub fn whole(a: u8) -> u8 {
    a + 1
}

pub fn broken(a: u8) -> u8 {
    let = str![;
    a
}

/// Understood as well.
pub fn after() -> u8 {
    3
}
