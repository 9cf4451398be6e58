// An event as a line that any reader of JSON takes: no half of a pair of surrogates, and no text that is longer
// than what is shown of it by far.
const LONGEST = 64 * 1024;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const cut = (text) =>
  text.length <= LONGEST
    ? text
    : `${text.slice(0, LONGEST / 2)}[... ${text.length - LONGEST} characters left out ...]${text.slice(-LONGEST / 2)}`;

module.exports = (event) =>
  JSON.stringify(event, (_, value) => (typeof value === "string" ? cut(value).replace(LONE, "\ufffd") : value)) + "\n";
