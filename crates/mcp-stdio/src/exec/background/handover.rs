//! [`CommandHandover`]: what one process gives another to run a command in its place.

use rustix::cmsg_space;
use rustix::io::IoSliceMut;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::ffi::OsString;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The most bytes of arguments and variables: more than execve(2) takes.
const MAX_BYTES: u32 = 16 << 20;
/// The byte that the descriptors come with.
const DESCRIPTORS: u8 = b'F';

/// The folder, the arguments and the variables of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandHandover {
    /// The folder to run in.
    pub(super) folder: PathBuf,
    /// The arguments of this program.
    pub(super) arguments: Vec<OsString>,
    /// The variables.
    pub(super) variables: Vec<(OsString, OsString)>,
}

impl CommandHandover {
    /// Sends the standard streams and this.
    pub(super) fn send(&self, mut socket: &UnixStream, streams: [BorrowedFd<'_>; 3]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&streams)) {
            return Err(io::Error::other("there is no room for three descriptors"));
        }
        sendmsg(socket, &[IoSlice::new(&[DESCRIPTORS])], &mut control, SendFlags::NOSIGNAL)?;
        let mut bytes = Vec::new();
        let mut texts = vec![self.folder.as_os_str()];
        texts.extend(self.arguments.iter().map(OsString::as_os_str));
        for text in texts {
            put(&mut bytes, text.as_bytes())?;
        }
        let mut head = Vec::new();
        put_number(&mut head, self.arguments.len())?;
        put_number(&mut head, self.variables.len())?;
        for (name, value) in &self.variables {
            put(&mut bytes, name.as_bytes())?;
            put(&mut bytes, value.as_bytes())?;
        }
        put_number(&mut head, bytes.len())?;
        socket.write_all(&head)?;
        socket.write_all(&bytes)
    }

    /// Receives the standard streams and the rest.
    pub(super) fn receive(mut socket: &UnixStream) -> io::Result<([OwnedFd; 3], Self)> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut first = [0];
        let received =
            recvmsg(socket, &mut [IoSliceMut::new(&mut first)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let streams: Vec<OwnedFd> = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "what was handed over is not complete");
        let streams: [OwnedFd; 3] = streams.try_into().map_err(|_| invalid())?;
        if received.bytes != 1 || first != [DESCRIPTORS] {
            return Err(invalid());
        }
        let arguments = number(&mut socket)?;
        let variables = number(&mut socket)?;
        let length = number(&mut socket)?;
        if length > MAX_BYTES || arguments > length || variables > length {
            return Err(invalid());
        }
        let mut bytes = vec![0; length as usize];
        socket.read_exact(&mut bytes)?;
        let mut rest = bytes.as_slice();
        let mut text = || -> io::Result<OsString> {
            let length = number(&mut rest)? as usize;
            let (text, behind) = rest.split_at_checked(length).ok_or_else(invalid)?;
            rest = behind;
            Ok(OsString::from_vec(text.to_vec()))
        };
        let folder = PathBuf::from(text()?);
        let arguments = (0..arguments).map(|_| text()).collect::<io::Result<_>>()?;
        let variables = (0..variables).map(|_| Ok((text()?, text()?))).collect::<io::Result<_>>()?;
        Ok((streams, Self { folder, arguments, variables }))
    }
}

fn put_number(bytes: &mut Vec<u8>, number: usize) -> io::Result<()> {
    let number = u32::try_from(number).ok().filter(|number| *number <= MAX_BYTES);
    let number = number.ok_or_else(|| io::Error::other("the command and its variables are too long"))?;
    bytes.extend(number.to_be_bytes());
    Ok(())
}

fn put(bytes: &mut Vec<u8>, text: &[u8]) -> io::Result<()> {
    put_number(bytes, text.len())?;
    bytes.extend(text);
    Ok(())
}

fn number(reader: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom};
    use std::os::fd::AsFd;

    #[test]
    fn streams_arguments_and_variables_arrive_as_they_were() {
        let (near, far) = UnixStream::pair().unwrap();
        let handover = CommandHandover {
            folder: PathBuf::from("/a b"),
            arguments: vec!["exec".into(), OsString::from_vec(vec![0xff, b'x']), OsString::new()],
            variables: vec![("A".into(), "1=2".into())],
        };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        file.seek(SeekFrom::Start(4)).unwrap();
        handover.send(&near, [file.as_fd(), near.as_fd(), near.as_fd()]).unwrap();
        let (streams, received) = CommandHandover::receive(&far).unwrap();
        assert_eq!(received, handover);
        // The same open file, at its position.
        let mut text = String::new();
        std::fs::File::from(streams.into_iter().next().unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "456789");
    }

    #[test]
    fn less_than_a_handover_is_an_error() {
        let (near, far) = UnixStream::pair().unwrap();
        (&near).write_all(b"F\0\0\0\x01").unwrap();
        drop(near);
        assert!(CommandHandover::receive(&far).is_err());
    }
}
