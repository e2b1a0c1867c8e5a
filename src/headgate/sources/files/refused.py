"""Options of Spark's file sources that a files source does not have: ignored, they would change rows in silence.

Options that only guess a schema, set limits on a parser or keep lists in memory change no row, and are left alone.
"""

from __future__ import annotations

_CONVERT = "read the column as string and convert it in the query"
_SET_ASIDE = "a bad record ends the query; set badRecordsPath to keep bad ones apart and go on"
_GLOB = 'write the folders into the path as a glob, such as .load("/data/in/**")'
_UTF_8 = "convert the files to UTF-8"
_LINES = "end each record with a line end"
_IN_QUERY = "change it in the query"
_STRICT = "write JSON by the standard"

REFUSED = {
    # Which files.
    "recursiveFileLookup": _GLOB,
    "basePath": "leave it out: names of folders do not become columns",
    "modifiedAfter": "move the files that you want into a folder of their own",
    "modifiedBefore": "move the files that you want into a folder of their own",
    "latestFirst": "the oldest file comes first, since its deadline does",
    "maxFileAge": "every file is read once, whatever its age: keep old ones out of the folder",
    "fileNameOnly": "a file is known by its whole path: move it into the folder once",
    "cleanSource": "files stay where they are: remove old ones yourself after the query has read them",
    "ignoreMissingFiles": "a file that vanished ends the query: put it back, or an empty file in its place",
    "ignoreCorruptFiles": _SET_ASIDE,
    # What is a record, and a bad one.
    "mode": _SET_ASIDE,
    "columnNameOfCorruptRecord": _SET_ASIDE,
    "encoding": _UTF_8,
    "charset": _UTF_8,
    "lineSep": _LINES,
    "multiLine": _LINES,
    "wholetext": "read lines, and put them together in the query",
    "comment": "take such lines out of the files, or read them as text",
    # How values are read.
    "dateFormat": _CONVERT,
    "timestampFormat": _CONVERT,
    "timestampNTZFormat": _CONVERT,
    "enableDateTimeParsingFallback": _CONVERT,
    "nanValue": _CONVERT,
    "positiveInf": _CONVERT,
    "negativeInf": _CONVERT,
    "emptyValue": _IN_QUERY,
    "ignoreLeadingWhiteSpace": _IN_QUERY,
    "ignoreTrailingWhiteSpace": _IN_QUERY,
    "unescapedQuoteHandling": "double or escape quotes inside of quoted values",
    "charToEscapeQuoteEscaping": "the escape character escapes itself",
    "allowComments": _STRICT,
    "allowUnquotedFieldNames": _STRICT,
    "allowSingleQuotes": _STRICT,
    "allowNumericLeadingZeros": _STRICT,
    "allowBackslashEscapingAnyCharacter": _STRICT,
    "allowUnquotedControlChars": _STRICT,
    "allowNonNumericNumbers": "read the column as string",
    "mergeSchema": "say the schema: columns that a file lacks are null",
    "datetimeRebaseMode": "times are read as they are written; convert those of Spark 2 with Spark",
    "int96RebaseMode": "times are read as they are written; convert those of Spark 2 with Spark",
}
"""The remedy by the option's name."""

HARMLESS = {
    "recursiveFileLookup": "false",
    "latestFirst": "false",
    "fileNameOnly": "false",
    "cleanSource": "off",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mode": "failfast",
    "encoding": "utf-8",
    "charset": "utf-8",
    "multiLine": "false",
    "wholetext": "false",
    "comment": "",
    "enableDateTimeParsingFallback": "false",
    "nanValue": "nan",
    "positiveInf": "inf",
    "negativeInf": "-inf",
    "emptyValue": "",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    "allowComments": "false",
    "allowUnquotedFieldNames": "false",
    "allowSingleQuotes": "false",
    "allowNumericLeadingZeros": "false",
    "allowBackslashEscapingAnyCharacter": "false",
    "allowUnquotedControlChars": "false",
    "allowNonNumericNumbers": "true",
    "mergeSchema": "false",
    "datetimeRebaseMode": "corrected",
    "int96RebaseMode": "corrected",
}
"""Values, in lower case, that ask for what is done anyway."""
