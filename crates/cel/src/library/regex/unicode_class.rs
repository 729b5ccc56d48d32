//! The Unicode categories and scripts that Go's regular expressions know by name.

/// The short and long names of categories in the form of [`canonical_unicode_class_name`], with the
/// category.
const CATEGORIES: &[(&str, &str)] = &[
    ("C", "C"),
    ("Cc", "Cc"),
    ("Cf", "Cf"),
    ("Cn", "Cn"),
    ("Co", "Co"),
    ("L", "L"),
    ("Lc", "LC"),
    ("Ll", "Ll"),
    ("Lm", "Lm"),
    ("Lo", "Lo"),
    ("Lt", "Lt"),
    ("Lu", "Lu"),
    ("M", "M"),
    ("Mc", "Mc"),
    ("Me", "Me"),
    ("Mn", "Mn"),
    ("N", "N"),
    ("Nd", "Nd"),
    ("Nl", "Nl"),
    ("No", "No"),
    ("P", "P"),
    ("Pc", "Pc"),
    ("Pd", "Pd"),
    ("Pe", "Pe"),
    ("Pf", "Pf"),
    ("Pi", "Pi"),
    ("Po", "Po"),
    ("Ps", "Ps"),
    ("S", "S"),
    ("Sc", "Sc"),
    ("Sk", "Sk"),
    ("Sm", "Sm"),
    ("So", "So"),
    ("Z", "Z"),
    ("Zl", "Zl"),
    ("Zp", "Zp"),
    ("Zs", "Zs"),
    ("Casedletter", "LC"),
    ("Closepunctuation", "Pe"),
    ("Cntrl", "Cc"),
    ("Combiningmark", "M"),
    ("Connectorpunctuation", "Pc"),
    ("Control", "Cc"),
    ("Currencysymbol", "Sc"),
    ("Dashpunctuation", "Pd"),
    ("Decimalnumber", "Nd"),
    ("Digit", "Nd"),
    ("Enclosingmark", "Me"),
    ("Finalpunctuation", "Pf"),
    ("Format", "Cf"),
    ("Initialpunctuation", "Pi"),
    ("Letter", "L"),
    ("Letternumber", "Nl"),
    ("Lineseparator", "Zl"),
    ("Lowercaseletter", "Ll"),
    ("Mark", "M"),
    ("Mathsymbol", "Sm"),
    ("Modifierletter", "Lm"),
    ("Modifiersymbol", "Sk"),
    ("Nonspacingmark", "Mn"),
    ("Number", "N"),
    ("Openpunctuation", "Ps"),
    ("Other", "C"),
    ("Otherletter", "Lo"),
    ("Othernumber", "No"),
    ("Otherpunctuation", "Po"),
    ("Othersymbol", "So"),
    ("Paragraphseparator", "Zp"),
    ("Privateuse", "Co"),
    ("Punct", "P"),
    ("Punctuation", "P"),
    ("Separator", "Z"),
    ("Spaceseparator", "Zs"),
    ("Spacingmark", "Mc"),
    ("Symbol", "S"),
    ("Titlecaseletter", "Lt"),
    ("Unassigned", "Cn"),
    ("Uppercaseletter", "Lu"),
];

/// The names of scripts. Go removes underscores from a name before the lookup, so it never finds
/// scripts with underscores in their names.
#[rustfmt::skip]
const SCRIPTS: &[&str] = &[
    "Adlam", "Ahom", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Batak", "Bengali",
    "Bhaiksuki", "Bopomofo", "Brahmi", "Braille", "Buginese", "Buhid", "Carian", "Chakma", "Cham",
    "Cherokee", "Chorasmian", "Common", "Coptic", "Cuneiform", "Cypriot", "Cyrillic", "Deseret",
    "Devanagari", "Dogra", "Duployan", "Elbasan", "Elymaic", "Ethiopic", "Georgian", "Glagolitic",
    "Gothic", "Grantha", "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul", "Hanunoo", "Hatran",
    "Hebrew", "Hiragana", "Inherited", "Javanese", "Kaithi", "Kannada", "Katakana", "Kawi",
    "Kharoshthi", "Khmer", "Khojki", "Khudawadi", "Lao", "Latin", "Lepcha", "Limbu", "Lisu",
    "Lycian", "Lydian", "Mahajani", "Makasar", "Malayalam", "Mandaic", "Manichaean", "Marchen",
    "Medefaidrin", "Miao", "Modi", "Mongolian", "Mro", "Multani", "Myanmar", "Nabataean",
    "Nandinagari", "Newa", "Nko", "Nushu", "Ogham", "Oriya", "Osage", "Osmanya", "Palmyrene",
    "Phoenician", "Rejang", "Runic", "Samaritan", "Saurashtra", "Sharada", "Shavian", "Siddham",
    "Sinhala", "Sogdian", "Soyombo", "Sundanese", "Syriac", "Tagalog", "Tagbanwa", "Takri",
    "Tamil", "Tangsa", "Tangut", "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh", "Tirhuta",
    "Toto", "Ugaritic", "Vai", "Vithkuqi", "Wancho", "Yezidi", "Yi",
];

/// Finds a class by its name. Returns class items for use between brackets; `None` for a name that
/// Go does not know.
pub(super) fn find_unicode_class(name: &str) -> Option<String> {
    let name = canonical_unicode_class_name(name);
    match name.as_str() {
        "Any" => return Some(r"\x{0}-\x{10FFFF}".to_owned()),
        "Ascii" => return Some(r"\x00-\x7F".to_owned()),
        "Assigned" => return Some(r"\P{gc=Cn}".to_owned()),
        // No text contains a surrogate.
        "Cs" | "Surrogate" => return Some(super::regex_translator::EMPTY_CLASS.to_owned()),
        _ => {}
    }
    if let Some((_, category)) = CATEGORIES.iter().find(|(known, _)| *known == name) {
        return Some(format!(r"\p{{gc={category}}}"));
    }
    SCRIPTS.iter().find(|script| **script == name).map(|script| format!(r"\p{{sc={script}}}"))
}

/// Converts the first letter to upper case and all others to lower case. Removes `_`, `-` and
/// blanks.
fn canonical_unicode_class_name(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    let mut canonical = String::with_capacity(name.len());
    for (index, c) in letters.enumerate() {
        canonical.push(if index == 0 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
    }
    canonical
}
