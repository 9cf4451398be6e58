//! The first process of a PID namespace: a program of a few instructions, which is made in memory.
//!
//! A PID namespace needs a first process that outlives the programs in it. When it ends, the kernel kills all of them.
//! This one reads from a pipe until the server closes the other end or dies, and then exits. A program from the file
//! system would have to be granted with its libraries, and a copy of this process would hold its secrets.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, write};

/// `EM_*`, `<elf.h>`, and the code, which reads a byte until that fails or there is none, and then exits:
///
/// ```c
/// char byte; long count;
/// do count = read(0, &byte, 1); while (count == -EINTR || count > 0);
/// exit_group(0);
/// ```
#[cfg(target_arch = "x86_64")]
const MACHINE_AND_CODE: Option<(u16, &[u8])> = Some((
    62,
    &[
        0x31, 0xc0, // again: xor eax, eax
        0x31, 0xff, // xor edi, edi
        0x48, 0x8d, 0x74, 0x24, 0xf8, // lea rsi, [rsp - 8]
        0xba, 0x01, 0x00, 0x00, 0x00, // mov edx, 1
        0x0f, 0x05, // syscall (read)
        0x48, 0x83, 0xf8, 0xfc, // cmp rax, -EINTR
        0x74, 0xea, // je again
        0x48, 0x85, 0xc0, // test rax, rax
        0x7f, 0xe5, // jg again
        0x31, 0xff, // xor edi, edi
        0xb8, 0xe7, 0x00, 0x00, 0x00, // mov eax, 231
        0x0f, 0x05, // syscall (exit_group)
    ],
));
#[cfg(target_arch = "aarch64")]
const MACHINE_AND_CODE: Option<(u16, &[u8])> = Some((
    183,
    &[
        0x00, 0x00, 0x80, 0xd2, // again: mov x0, #0
        0xe1, 0x43, 0x00, 0xd1, // sub x1, sp, #16
        0x22, 0x00, 0x80, 0xd2, // mov x2, #1
        0xe8, 0x07, 0x80, 0xd2, // mov x8, #63
        0x01, 0x00, 0x00, 0xd4, // svc #0 (read)
        0x1f, 0x10, 0x00, 0xb1, // cmn x0, #EINTR
        0x40, 0xff, 0xff, 0x54, // b.eq again
        0x1f, 0x00, 0x00, 0xf1, // cmp x0, #0
        0x0c, 0xff, 0xff, 0x54, // b.gt again
        0x00, 0x00, 0x80, 0xd2, // mov x0, #0
        0xc8, 0x0b, 0x80, 0xd2, // mov x8, #94
        0x01, 0x00, 0x00, 0xd4, // svc #0 (exit_group)
    ],
));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE_AND_CODE: Option<(u16, &[u8])> = None;

/// The address of the program. Every system maps programs there.
const ADDRESS: u64 = 0x40_0000;
const HEADERS_BYTES: u64 = 64 + 56;

/// Returns the program as an ELF file (elf(5)) with one segment.
fn elf_file(machine: u16, code: &[u8]) -> Vec<u8> {
    let length = HEADERS_BYTES + code.len() as u64;
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"); // 64 bits, little-endian
    file.extend(2_u16.to_le_bytes()); // ET_EXEC
    file.extend(machine.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    for offset in [ADDRESS + HEADERS_BYTES, 64, 0] {
        file.extend(offset.to_le_bytes()); // entry, program headers, no sections
    }
    file.extend(0_u32.to_le_bytes());
    for size in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(size.to_le_bytes()); // headers: one for the program, none for sections
    }
    file.extend(1_u32.to_le_bytes()); // PT_LOAD
    file.extend(5_u32.to_le_bytes()); // read and execute
    for value in [0, ADDRESS, ADDRESS, length, length, 0x1000] {
        file.extend(value.to_le_bytes());
    }
    file.extend(code);
    file
}

/// Returns the program, ready to be executed.
///
/// # Errors
/// `Unsupported` on an architecture for which there is no code; the system allows no programs in memory.
pub(super) fn program() -> io::Result<OwnedFd> {
    let Some((machine, code)) = MACHINE_AND_CODE else { return Err(io::ErrorKind::Unsupported.into()) };
    let create = |flags| memfd_create(c"process-runner-init", MemfdFlags::CLOEXEC | flags);
    // Since Linux 6.3 the system may be set to make files in memory that cannot be executed, unless a caller asks.
    let file = match create(MemfdFlags::EXEC) {
        Err(Errno::INVAL) => create(MemfdFlags::empty())?, // before Linux 6.3
        other => other?,
    };
    let bytes = elf_file(machine, code);
    match write(&file, &bytes)? {
        written if written == bytes.len() => Ok(file),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}
