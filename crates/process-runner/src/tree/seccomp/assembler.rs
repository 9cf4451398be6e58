//! Assembles the BPF program of a filter.
//!
//! An assembler of our own, because the crate `seccompiler` gives all calls of a program the same error, and tests the
//! calls one by one. This one searches a sorted list, so most calls take few steps. The kernel runs a new filter once
//! for every call, to find those that it always allows, and so the search shortens each start too.

/// `struct seccomp_data`: the offsets of its members.
const NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
const ARGUMENTS_OFFSET: u32 = 16;

// `<linux/bpf_common.h>`: load a word, compare with a constant, and return.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
const RETURN: u16 = 0x06;

// `SECCOMP_RET_*`, `<linux/seccomp.h>`.
const ALLOW: u32 = 0x7FFF_0000;
const ERRNO: u32 = 0x0005_0000;
const KILL_PROCESS: u32 = 0x8000_0000;

/// The numbers of the x32 ABI, a second set of calls on x86-64, have this bit.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// A system call that fails with `errno` if all tests of its arguments hold.
#[derive(Clone, Debug)]
pub(super) struct SystemCallRefusal {
    pub(super) call: u32,
    pub(super) errno: u16,
    pub(super) tests: Vec<SystemCallArgumentTest>,
}

/// A test of one half of an argument, after `mask` was applied to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SystemCallArgumentTest {
    pub(super) argument: u32,
    pub(super) half: ArgumentHalf,
    pub(super) mask: u32,
    pub(super) comparison: Comparison,
    pub(super) value: u32,
}

/// The half of a 64-bit argument that a test looks at. A filter reads 32 bits at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArgumentHalf {
    Low,
    High,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
}

/// Returns the program that refuses the calls of `refusals` and allows all others. Calls of another architecture (such
/// as those of a 32-bit program) end the process, because their numbers mean other calls.
pub(super) fn assemble(architecture: u32, refusals: &[SystemCallRefusal]) -> Vec<libc::sock_filter> {
    let mut refusals = refusals.to_vec();
    // Stable: refusals of one call keep their order.
    refusals.sort_by_key(|refusal| refusal.call);
    let groups: Vec<&[SystemCallRefusal]> = refusals.chunk_by(|one, other| one.call == other.call).collect();
    let mut program = vec![
        statement(LOAD, ARCHITECTURE_OFFSET),
        jump(JUMP_EQUAL, architecture, 1, 0),
        statement(RETURN, KILL_PROCESS),
        statement(LOAD, NUMBER_OFFSET),
    ];
    #[cfg(target_arch = "x86_64")]
    program.extend([
        jump(JUMP_GREATER_OR_EQUAL, X32, 0, 1),
        // As a kernel without this ABI.
        statement(RETURN, ERRNO | libc::ENOSYS.unsigned_abs()),
    ]);
    program.extend(search(&groups));
    program
}

/// Returns the code that finds the number among the calls of `groups`, which are sorted by number.
fn search(groups: &[&[SystemCallRefusal]]) -> Vec<libc::sock_filter> {
    match groups {
        [] => vec![statement(RETURN, ALLOW)],
        [group] => match_call(group),
        _ => {
            let (before, from) = groups.split_at(groups.len() / 2);
            let Some(middle) = from.first().and_then(|group| group.first()) else { return search(before) };
            let (left, right) = (search(before), search(from));
            // A conditional jump reaches 255 instructions, this one any number.
            let length = u32::try_from(left.len()).unwrap_or(u32::MAX);
            let mut code = vec![jump(JUMP_GREATER_OR_EQUAL, middle.call, 0, 1), statement(JUMP, length)];
            code.extend(left);
            code.extend(right);
            code
        }
    }
}

/// Returns the code that refuses one call, by the first of its refusals whose tests all hold.
fn match_call(group: &[SystemCallRefusal]) -> Vec<libc::sock_filter> {
    let mut code = Vec::new();
    for refusal in group {
        let mut tests = Vec::new();
        for test in &refusal.tests {
            tests.extend(match_argument(test));
        }
        tests.push(statement(RETURN, ERRNO | u32::from(refusal.errno)));
        // A test that fails skips the rest of this refusal.
        let length = tests.len();
        for (index, instruction) in tests.iter_mut().enumerate() {
            let rest = u8::try_from(length - index - 1).unwrap_or(u8::MAX);
            for target in [&mut instruction.jt, &mut instruction.jf] {
                if *target == FAILED {
                    *target = rest;
                }
            }
        }
        code.extend(tests);
    }
    code.push(statement(RETURN, ALLOW));
    let Some(first) = group.first() else { return code };
    let mut matched = vec![jump(JUMP_EQUAL, first.call, 1, 0), statement(RETURN, ALLOW)];
    matched.append(&mut code);
    matched
}

/// A target that stands for the code after the refusal.
const FAILED: u8 = u8::MAX;

fn match_argument(test: &SystemCallArgumentTest) -> [libc::sock_filter; 3] {
    let low_offset = if cfg!(target_endian = "little") { 0 } else { 4 };
    let half_offset = match test.half {
        ArgumentHalf::Low => low_offset,
        ArgumentHalf::High => 4 - low_offset,
    };
    let (equal, different) = match test.comparison {
        Comparison::Equal => (0, FAILED),
        Comparison::NotEqual => (FAILED, 0),
    };
    [
        statement(LOAD, ARGUMENTS_OFFSET + 8 * test.argument + half_offset),
        statement(AND, test.mask),
        jump(JUMP_EQUAL, test.value, equal, different),
    ]
}

fn statement(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Runs a program as the kernel does, and returns what it returns and the number of its steps.
    pub(in super::super) fn run(
        program: &[libc::sock_filter],
        architecture: u32,
        call: u32,
        arguments: [u64; 6],
    ) -> (SeccompVerdict, usize) {
        let word = |offset: u32| match offset {
            NUMBER_OFFSET => call,
            ARCHITECTURE_OFFSET => architecture,
            _ => {
                let offset = usize::try_from(offset - ARGUMENTS_OFFSET).unwrap();
                let bytes = arguments[offset / 8].to_ne_bytes();
                u32::from_ne_bytes(bytes[offset % 8..][..4].try_into().unwrap())
            }
        };
        let (mut at, mut accumulator, mut steps) = (0, 0, 0);
        loop {
            let instruction = program[at];
            steps += 1;
            at += 1;
            let holds = match instruction.code {
                LOAD => {
                    accumulator = word(instruction.k);
                    continue;
                }
                AND => {
                    accumulator &= instruction.k;
                    continue;
                }
                JUMP => {
                    at += usize::try_from(instruction.k).unwrap();
                    continue;
                }
                JUMP_EQUAL => accumulator == instruction.k,
                JUMP_GREATER_OR_EQUAL => accumulator >= instruction.k,
                RETURN => return (SeccompVerdict::of(instruction.k), steps),
                code => panic!("{code:#x}"),
            };
            at += usize::from(if holds { instruction.jt } else { instruction.jf });
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) enum SeccompVerdict {
        Allowed,
        Errno(u16),
        Killed,
    }

    impl SeccompVerdict {
        fn of(value: u32) -> Self {
            match value {
                ALLOW => Self::Allowed,
                KILL_PROCESS => Self::Killed,
                _ => Self::Errno(u16::try_from(value & !ERRNO).unwrap()),
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn the_search_finds_exactly_the_refused_calls(
            refused in proptest::collection::btree_map(0_u32..460, 1_u16..130, 0..120),
        ) {
            let refusals: Vec<_> = refused
                .iter()
                .map(|(call, errno)| SystemCallRefusal { call: *call, errno: *errno, tests: Vec::new() })
                .collect();
            let program = assemble(1, &refusals);
            for call in 0..470 {
                let expected = refused.get(&call).map_or(SeccompVerdict::Allowed, |errno| SeccompVerdict::Errno(*errno));
                let (verdict, steps) = run(&program, 1, call, [0; 6]);
                assert_eq!(verdict, expected);
                assert!(steps < 30, "{steps}");
                assert_eq!(run(&program, 2, call, [0; 6]).0, SeccompVerdict::Killed);
            }
        }
    }

    #[test]
    fn all_tests_of_one_refusal_must_hold_and_the_first_refusal_that_holds_counts() {
        let test = |argument, half, comparison, value| SystemCallArgumentTest {
            argument,
            half,
            mask: 0xff,
            comparison,
            value,
        };
        let refusals = [
            SystemCallRefusal {
                call: 7,
                errno: 1,
                tests: vec![
                    test(0, ArgumentHalf::Low, Comparison::Equal, 3),
                    test(1, ArgumentHalf::High, Comparison::NotEqual, 0),
                ],
            },
            SystemCallRefusal {
                call: 7,
                errno: 2,
                tests: vec![test(2, ArgumentHalf::Low, Comparison::Equal, 9)],
            },
        ];
        let program = assemble(1, &refusals);
        let verdict = |arguments| run(&program, 1, 7, arguments).0;
        assert_eq!(verdict([0x103, 1 << 32, 0, 0, 0, 0]), SeccompVerdict::Errno(1));
        assert_eq!(verdict([3, 1, 0, 0, 0, 0]), SeccompVerdict::Allowed);
        assert_eq!(verdict([4, 1 << 32, 0, 0, 0, 0]), SeccompVerdict::Allowed);
        assert_eq!(verdict([4, 1 << 32, 9, 0, 0, 0]), SeccompVerdict::Errno(2));
    }
}
