//! Attributes of XML elements.

use quick_xml::events::BytesStart;

/// Returns the value of an attribute. One with a faulty escape is returned as it stands.
pub(super) fn text(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok().flatten()?;
    Some(match attribute.unescape_value() {
        Ok(value) => value.into_owned(),
        Err(_) => String::from_utf8_lossy(&attribute.value).into_owned(),
    })
}

pub(super) fn number(element: &BytesStart<'_>, name: &str) -> Option<u64> {
    text(element, name)?.trim().parse().ok()
}
