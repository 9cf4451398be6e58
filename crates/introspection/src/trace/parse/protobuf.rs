//! Reads the fields of a protocol buffer (protobuf.dev/programming-guides/encoding), as far as pprof's messages need it.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldValue<'a> {
    Number(u64),
    /// A message, a text or packed numbers.
    Bytes(&'a [u8]),
    /// A number of fixed width, which no field of pprof has.
    Fixed,
}

/// The reason why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MalformedMessage {
    #[error("a field ends before its value does")]
    CutOff,
    #[error("a number has more than ten bytes")]
    LongNumber,
    #[error("a field has the wire type {0}, which this format has not")]
    WireType(u64),
    #[error("field {0} has a value of another type")]
    FieldType(u64),
}

/// The fields of a message, in their order: the number of each, and its value.
#[derive(Clone, Debug)]
pub(super) struct MessageFields<'a>(&'a [u8]);

impl<'a> MessageFields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn number(&mut self) -> Result<u64, MalformedMessage> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(MalformedMessage::CutOff)?;
            self.0 = rest;
            // The bits of a tenth byte beyond the 64th are dropped, as other readers do.
            number |= u64::from(byte & 0x7f).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(MalformedMessage::LongNumber)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], MalformedMessage> {
        let length = usize::try_from(length).map_err(|_| MalformedMessage::CutOff)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(MalformedMessage::CutOff)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn field(&mut self) -> Result<(u64, FieldValue<'a>), MalformedMessage> {
        let key = self.number()?;
        let value = match key & 7 {
            0 => FieldValue::Number(self.number()?),
            1 => self.bytes(8).map(|_| FieldValue::Fixed)?,
            2 => {
                let length = self.number()?;
                FieldValue::Bytes(self.bytes(length)?)
            }
            5 => self.bytes(4).map(|_| FieldValue::Fixed)?,
            other => return Err(MalformedMessage::WireType(other)),
        };
        Ok((key >> 3, value))
    }
}

impl<'a> Iterator for MessageFields<'a> {
    type Item = Result<(u64, FieldValue<'a>), MalformedMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> FieldValue<'a> {
    /// Returns the number that field `field` is.
    pub(super) fn number(self, field: u64) -> Result<u64, MalformedMessage> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) | Self::Fixed => Err(MalformedMessage::FieldType(field)),
        }
    }

    /// Returns the signed number that field `field` is.
    pub(super) fn signed(self, field: u64) -> Result<i64, MalformedMessage> {
        self.number(field).map(u64::cast_signed)
    }

    /// Returns the bytes that field `field` is.
    pub(super) fn bytes(self, field: u64) -> Result<&'a [u8], MalformedMessage> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) | Self::Fixed => Err(MalformedMessage::FieldType(field)),
        }
    }

    /// Adds the numbers of a repeated field to `numbers`: one, or several that are packed.
    pub(super) fn numbers(self, field: u64, numbers: &mut Vec<u64>) -> Result<(), MalformedMessage> {
        match self {
            Self::Number(number) => numbers.push(number),
            Self::Bytes(packed) => {
                let mut rest = MessageFields::new(packed);
                while !rest.0.is_empty() {
                    numbers.push(rest.number()?);
                }
            }
            Self::Fixed => return Err(MalformedMessage::FieldType(field)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_their_order_and_those_of_fixed_width_skipped() {
        let message = [0x08, 0x96, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1d, 1, 2, 3, 4, 0x22, 2, b'h', b'i'];
        let fields: Result<Vec<_>, _> = MessageFields::new(&message).collect();
        let expected = [
            (1, FieldValue::Number(150)),
            (2, FieldValue::Fixed),
            (3, FieldValue::Fixed),
            (4, FieldValue::Bytes(b"hi")),
        ];
        assert_eq!(fields.unwrap(), expected);
    }

    #[test]
    fn what_is_cut_off_or_of_another_type_is_an_error() {
        let first = |message| MessageFields::new(message).next().unwrap().unwrap_err();
        assert_eq!(first(&[0x22, 3, b'h', b'i']), MalformedMessage::CutOff);
        assert_eq!(first(&[0x08, 0x96]), MalformedMessage::CutOff);
        assert_eq!(first(&[0x0b]), MalformedMessage::WireType(3));
        assert_eq!(first(&[0xff; 11]), MalformedMessage::LongNumber);
        assert_eq!(FieldValue::Bytes(b"hi").number(7), Err(MalformedMessage::FieldType(7)));
    }

    #[test]
    fn the_largest_and_negative_numbers_are_read() {
        let message = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let (field, value) = MessageFields::new(&message).next().unwrap().unwrap();
        assert_eq!((value.number(field), value.signed(field)), (Ok(u64::MAX), Ok(-1)));
    }
}
