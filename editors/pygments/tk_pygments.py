"""A Pygments lexer for the tk language, with which Sphinx, MkDocs, Jupyter and others color `tk` code."""

from pygments.lexer import RegexLexer, bygroups, default, words
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

__all__ = ["TkLexer"]

# The words of spec/01-lexical.md, "Names": those that are never names, and those that are keywords at their places only.
KEYWORDS = (
    "as break const continue else false fn for if in kernel let mut None return struct true use while"
).split()
CLAUSES = "grid launch tune require prefer alias scratch".split()
# spec/02-types.md, "Element types", and the classes of types.
ELEMENT_TYPES = (
    "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bf16 "
    "f8e4m3 f8e5m2 f8e4m3fnuz f8e5m2fnuz e2m1 e8m0"
).split()
TYPE_CLASSES = "int sint uint float f8 number dtype shape".split()

CONSTANTS = ("true", "false", "None")
DECLARATIONS = ("const", "fn", "kernel", "let", "mut", "struct")
NAME = r"[^\W\d]\w*"


class TkLexer(RegexLexer):
    """Lexes a file of the tk language; Pygments guesses a kind for names from their form, as TextMate grammars do."""

    name = "tk"
    url = ""
    aliases = ["tk"]
    filenames = ["*.tk"]
    mimetypes = ["text/x-tk"]
    version_added = ""

    tokens = {
        "root": [
            (r"\s+", Whitespace),
            (r"///(?!/)[^\n]*", String.Doc),
            (r"//[^\n]*", Comment.Single),
            (r'"', String.Double, "string"),
            (r"@" + NAME, Name.Decorator),
            (r"\b(fn|kernel)(\s+)(" + NAME + ")", bygroups(Keyword.Declaration, Whitespace, Name.Function)),
            (r"\b(struct)(\s+)(" + NAME + ")", bygroups(Keyword.Declaration, Whitespace, Name.Class)),
            (r"\b(use)\b", Keyword.Namespace, "use"),
            (r'\b(test|assert_error)(\s+)(?=")', bygroups(Keyword, Whitespace)),
            (r"^(\s*)(export)(\s+)(?=[^\W\d])", bygroups(Whitespace, Keyword, Whitespace)),
            (words(CONSTANTS, prefix=r"\b", suffix=r"\b"), Keyword.Constant),
            (words(DECLARATIONS, prefix=r"\b", suffix=r"\b"), Keyword.Declaration),
            (words(KEYWORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (r"(?<![.\w])(" + "|".join(CLAUSES) + r")(\s*)(?=\()", bygroups(Keyword.Pseudo, Whitespace)),
            (r"(?<![.\w])(?:" + "|".join(ELEMENT_TYPES) + r")\b(?!\s*[(:])", Keyword.Type),
            (r"(?<![.\w])(?:" + "|".join(TYPE_CLASSES) + r")\b(?!\s*[.:(=])", Keyword.Type),
            (r"(?<![.\w])(?:tile|view)\b(?!\s*(?:[.(:]|=(?!=)))", Keyword.Type),
            (r"(?<![.\w])self\b", Name.Builtin.Pseudo),
            (r"(?<![.\w])(?:inf|nan)\b(?!\s*[.(\[:])", Number.Float),
            (r"\b_*[A-Z][A-Z0-9_]*\b(?!\s*\()", Name.Constant),
            (r"\b_*[A-Z]\w*", Name.Class),
            (NAME + r"(?=\s*\()", Name.Function),
            (NAME, Name),
            (r"0[xX][0-9a-fA-F_]+\b", Number.Hex),
            (r"0[bB][01_]+\b", Number.Bin),
            (r"0[oO][0-7_]+\b", Number.Oct),
            (r"\d[\d_]*(?:\.\d[\d_]*(?:[eE][+-]?\d[\d_]*)?|[eE][+-]?\d[\d_]*)\b", Number.Float),
            (r"\d[\d_]*\b", Number.Integer),
            (r"->|==|!=|<=|>=|&&|\|\||<<=?|>>=?|[-+*/%&|^!<>]=?|[=?]", Operator),
            (r"[()\[\]{},;.:]", Punctuation),
            (r".", Error),
        ],
        "string": [
            (r'[^"\\\n]+', String.Double),
            (r'\\(?:[ntr0\\"]|u\{[0-9a-fA-F]+\})', String.Escape),
            (r"\\.", Error),
            (r'"', String.Double, "#pop"),
            (r"\n", Error, "#pop"),
        ],
        "use": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"\bas\b", Keyword),
            (NAME, Name.Namespace),
            (r"::|[{},]", Punctuation),
            (r";", Punctuation, "#pop"),
            default("#pop"),
        ],
    }
