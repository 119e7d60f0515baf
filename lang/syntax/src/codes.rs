//! The catalogue of diagnostic codes: one line each, never reused.
//!
//! The longer text of a code is in `spec/errors/E####.md`; a test checks that both lists agree.

/// A diagnostic code such as `E0304`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

macro_rules! catalogue {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $title:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code($code);)*
        /// Every code with its title, in order.
        pub const ALL: &[(Code, &str)] = &[$(($name, $title)),*];
    };
}

// 00 the compiler and files, 01 syntax, 02 names, 03 types and shapes, 04 compile time, 05 memory,
// 06 statements, 07 launch, 08 specialization, 09 tests,
// 10 machine code. W: warnings and lints.
catalogue! {
    INTERNAL = "E0001", "internal compiler error";
    UNSUPPORTED = "E0002", "not supported yet";
    FILE = "E0003", "file cannot be read";

    SYNTAX = "E0101", "unexpected token";
    UNCLOSED = "E0102", "unclosed bracket";
    UNOPENED = "E0103", "unmatched closing bracket";
    BAD_TOKEN = "E0104", "invalid token";
    MISSING_SEMICOLON = "E0105", "missing semicolon";
    TOO_DEEP = "E0106", "nested too deeply";
    BAD_LITERAL = "E0107", "malformed literal";

    UNKNOWN_NAME = "E0201", "unknown name";
    DUPLICATE = "E0202", "duplicate definition";
    UNKNOWN_MEMBER = "E0203", "unknown field, method or property";
    UNKNOWN_IMPORT = "E0204", "import not found";
    PRIVATE = "E0205", "name is private to its file";
    NOT_A_VALUE = "E0206", "name cannot be used here";
    RECURSION = "E0207", "recursion";
    UNKNOWN_ATTRIBUTE = "E0208", "unknown attribute or clause";

    TYPE_MISMATCH = "E0301", "wrong type";
    ELEMENT_MISMATCH = "E0302", "element types differ";
    RANK_MISMATCH = "E0303", "ranks differ";
    SHAPE_MISMATCH = "E0304", "shapes differ";
    DOT_SHAPE = "E0305", "incompatible shapes in dot";
    CLASS = "E0306", "operation is not defined for this element type";
    ARGUMENT_COUNT = "E0307", "wrong number of arguments";
    ARGUMENT_NAME = "E0308", "unknown or repeated argument name";
    NOT_CALLABLE = "E0309", "not callable";
    CANNOT_INFER = "E0310", "compile-time argument cannot be inferred";
    LITERAL_RANGE = "E0311", "literal is out of range";
    BAD_CAST = "E0312", "invalid cast";
    BOUND = "E0313", "operation is not valid for every member of the bound";
    CONDITION = "E0314", "condition is not a single bool";
    INDEX = "E0315", "cannot be indexed this way";
    SIGNEDNESS = "E0316", "comparison of signed and unsigned integers";
    PATTERN = "E0317", "pattern does not match the value";
    BRANCHES = "E0318", "branches have different types";
    FIELDS = "E0319", "missing, unknown or repeated struct field";
    AXIS = "E0320", "axis is out of range";
    TILE_RANK = "E0321", "rank of a tile or view is out of range";

    NOT_CONST = "E0401", "compile-time value required";
    NOT_STATIC_ARG = "E0402", "wrong compile-time argument";
    STATIC_ASSERT = "E0403", "static_assert failed";
    CONST_EVAL = "E0404", "compile-time evaluation failed";
    UNKNOWN_EXTENT = "E0405", "value must be known before specialization";

    STORE_CONST = "E0501", "store through a pointer or view that is not mut";
    MASK = "E0502", "mask is not bool";
    VIEW_INDEX = "E0503", "view indexed like a tile";
    POINTER_OP = "E0504", "operation is not defined for pointers";
    POSITION = "E0505", "invalid position in a view";

    UNASSIGNED = "E0601", "used before it is assigned";
    NOT_MUT = "E0602", "assignment to a variable that is not mut";
    LOOP_STATE = "E0603", "variable changes its type in a loop";
    NOT_IN_LOOP = "E0604", "break or continue outside a loop";
    RETURN_TYPE = "E0605", "wrong return type";
    NOT_ITERABLE = "E0606", "not iterable";
    NOT_ASSIGNABLE = "E0607", "not assignable";
    MISSING_RETURN = "E0608", "function does not return a value on every path";
    HALF_DONE = "E0609", "return, break or continue in the middle of an expression";

    LAUNCH_ARGS = "E0701", "wrong launch arguments";
    LAUNCH_DTYPE = "E0702", "launch argument has the wrong type";
    LAUNCH_RANK = "E0703", "launch argument has the wrong rank";
    REQUIRE = "E0704", "requirement of the kernel is not met";
    GRID = "E0705", "grid cannot be launched";
    CLAUSE = "E0706", "wrong launch clause";
    KERNEL_CALL = "E0707", "kernel cannot be called here";
    FAULT = "E0708", "kernel failed at run time";
    UNWRITTEN = "E0709", "read of uninitialized memory";
    RACE = "E0710", "race between programs";
    ALIAS = "E0711", "undeclared aliasing of parameters";
    OFFSET = "E0712", "pointer offset overflows";
    PROMISE = "E0713", "promise does not hold";
    DIVISION = "E0714", "integer division by zero";
    LANES = "E0715", "one store writes different values to the same element";
    OUTSIDE = "E0716", "index is out of bounds";

    INSTANCE = "E0801", "constraint is violated in this specialization";
    TILE_TOO_LARGE = "E0802", "tile is too large";
    EXTENT = "E0803", "extent is not positive";
    LOWERING_LIMIT = "E0804", "specialization does not terminate";
    NOT_ON_TARGET = "E0805", "operation is not available on this target";
    TOO_LARGE = "E0806", "kernel is too large";

    TEST_EXPECTED = "E0901", "expected diagnostic was not reported";
    TEST_ONLY = "E0902", "only available in tests";

    NO_ASSEMBLER = "E1001", "assembler is missing";
    ASSEMBLER = "E1002", "assembler failed";
    NOT_COMPILED = "E1003", "cannot be compiled for this target";
    SHARED_MEMORY = "E1004", "kernel needs more shared memory than the target has";
    NOT_SHIPPED = "E1005", "kernel cannot be shipped";

    UNUSED_VARIABLE = "W0201", "variable or parameter is never used";
    UNUSED_MUT = "W0202", "variable does not need to be mut";
    UNUSED_IMPORT = "W0203", "import is never used";
    UNUSED_PRIVATE = "W0204", "private item is never used";
    SHADOWED_BUILTIN = "W0205", "parameter shadows a builtin";

    FRACTION = "W0301", "quotient of integers becomes a float";

    UNMASKED_LANES = "W0501", "lanes past the end are not masked";
    MASK_OFF_BY_ONE = "W0502", "mask is off by one";
    NARROW_OFFSET = "W0503", "pointer offset may wrap";
    PADDING = "W0504", "padding lanes affect a reduction";
    MEETING = "W0505", "elements of a tile meet in one element of memory";
    REMAINDER = "W0506", "position may be negative";

    UNUSED_RESULT = "W0601", "result is never used";

    TUNING = "W0701", "tuning record is not used";
    NO_GRID = "W0702", "kernel asks for its number along an axis that its grid does not have";

    SPILLS = "W1001", "kernel spills registers";
    SHALLOW = "W1002", "loop has fewer stages than requested";
    OPERANDS = "W1003", "operands of a product do not fit in shared memory";
    ADVICE = "W1004", "assembler reports lost performance";
}

/// The title of a code, by its text.
pub fn title(code: &str) -> Option<&'static str> {
    ALL.iter().find(|(c, _)| c.0 == code).map(|(_, t)| *t)
}

/// The code with this text.
pub fn find(code: &str) -> Option<Code> {
    ALL.iter().map(|(c, _)| *c).find(|c| c.0 == code)
}
