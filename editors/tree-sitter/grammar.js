/**
 * @file The grammar of the tk language for tree-sitter.
 *
 * It accepts the texts that the parser of the language accepts (`lang/syntax`), and nests them as that does; the rules
 * have the names of the tree there (`ast.rs`). `test_grammar.py` compares the two. `README.md` lists where they differ.
 */

// How tight operators bind, the loosest first. Comparisons are between `and` and `bit_or`; they cannot be chained, so
// their operands are a rule of their own, `_term`, and they need no number.
const PREC = { or: 1, and: 2, bit_or: 4, bit_xor: 5, bit_and: 6, shift: 7, sum: 8, product: 9, cast: 10 };

const KEYWORDS = [
  "as", "break", "const", "continue", "else", "false", "fn", "for", "if", "in", "kernel", "let", "mut", "None",
  "return", "struct", "true", "use", "while",
];

/** `a, b` or `a, b,` or nothing. */
const list = (rule) => optional(seq(rule, repeat(seq(",", rule)), optional(",")));

/** At least one comma: without it, parentheses only group. */
const tuple = (rule) => seq("(", optional(seq(rule, ",", list(rule))), ")");

const any = (rules) => (rules.length > 1 ? choice(...rules) : rules[0]);

/** Operators that bind to the left, each level an array of a precedence and its operators. */
const binary = (rule, ...levels) =>
  choice(
    ...levels.map(([level, ...operators]) =>
      prec.left(
        level,
        seq(field("left", rule), field("operator", any(operators)), field("right", rule)),
      ),
    ),
  );

export default grammar({
  name: "tk",

  word: ($) => $.identifier,

  extras: ($) => [/[ \t\r\n\f\uFEFF]/, $.comment, $.doc_comment],

  // Keywords are never names; `test`, `export`, `assert_error`, `self`, `tune` and other words are keywords at their
  // places only.
  reserved: { global: (_) => KEYWORDS },

  supertypes: ($) => [$.item, $.statement, $.expression, $.type, $.pattern],

  rules: {
    source_file: ($) => repeat(choice($.item, ";")),

    // Items

    item: ($) =>
      choice(
        $.use_item,
        $.const_item,
        $.struct_item,
        $.function_item,
        $.kernel_item,
        $.export_item,
        $.test_item,
      ),

    // `@fast`, `@unroll(4)`
    attribute: ($) => seq("@", field("name", $.identifier), field("arguments", optional($.arguments))),

    use_item: ($) =>
      seq(
        repeat($.attribute),
        "use",
        choice(
          seq(field("path", choice($.identifier, $.path)), optional(seq("as", field("alias", $.identifier)))),
          seq($._modules, $.use_group),
        ),
        ";",
      ),

    use_group: ($) => seq("{", list($.identifier), "}"),

    // Also a statement.
    const_item: ($) => seq(repeat($.attribute), $._constant),

    _constant: ($) =>
      seq(
        "const",
        field("name", $.identifier),
        optional(seq(":", field("type", $.type))),
        "=",
        field("value", $.expression),
        ";",
      ),

    struct_item: ($) =>
      seq(
        repeat($.attribute),
        "struct",
        field("name", $.identifier),
        field("compile_time_parameters", optional($.compile_time_parameters)),
        field("body", $.struct_body),
      ),

    // A field has a comma after it; before a function and at the end it can be left out. A function may have one.
    struct_body: ($) =>
      seq(
        "{",
        repeat(
          choice(
            seq(";", optional(",")),
            seq(alias($.parameter, $.field), ","),
            seq(optional(alias($.parameter, $.field)), $.function_item, optional(",")),
          ),
        ),
        optional(alias($.parameter, $.field)),
        "}",
      ),

    function_item: ($) =>
      seq(
        repeat($.attribute),
        "fn",
        field("name", $.identifier),
        $._parameter_lists,
        optional(seq("->", field("result", $.type))),
        repeat($.clause),
        field("body", $.block),
      ),

    // A kernel has no result.
    kernel_item: ($) =>
      seq(
        repeat($.attribute),
        "kernel",
        field("name", $.identifier),
        $._parameter_lists,
        repeat($.clause),
        field("body", $.block),
      ),

    _parameter_lists: ($) =>
      seq(
        field("compile_time_parameters", optional($.compile_time_parameters)),
        field("parameters", $.parameters),
      ),

    compile_time_parameters: ($) => seq("[", list($.compile_time_parameter), "]"),

    // `T: f16 | bf16 = f16`
    compile_time_parameter: ($) =>
      seq(
        field("name", $.identifier),
        ":",
        field("bound", choice($.type, $.type_set)),
        optional(seq("=", field("default", $.expression))),
      ),

    type_set: ($) => seq($.type, repeat1(seq("|", $.type))),

    parameters: ($) => seq("(", list($.parameter), ")"),

    // `x: f32`, `axis: const i32 = 0`, `self`
    parameter: ($) =>
      seq(
        repeat($.attribute),
        choice(
          field("name", $._self),
          seq(
            field("name", choice($.identifier, $._self)),
            ":",
            optional("const"),
            field("type", $.type),
          ),
        ),
        optional(seq("=", field("default", $.expression))),
      ),

    // `grid(n)`: which words are clauses is not a question of syntax. `tune` has rows.
    clause: ($) =>
      choice(
        seq(field("name", $.identifier), field("arguments", alias($._clause_arguments, $.arguments))),
        prec.right(
          seq(
            field("name", alias("tune", $.identifier)),
            field("arguments", alias($._clause_arguments, $.arguments)),
            field("rows", optional($.tune_rows)),
          ),
        ),
      ),

    _clause_arguments: ($) => seq("(", list(choice($.expression, $.named_argument, $.scratch_argument)), ")"),

    // `part: *mut f32` of `scratch`
    scratch_argument: ($) => seq(field("name", $._name), ":", field("type", $.type)),

    tune_rows: ($) => seq("{", list($.tune_row), "}"),

    // `{ BM = [64, 128], warps = 8 } if target.has_tma`
    tune_row: ($) =>
      seq(
        "{",
        list(choice($.expression, $.named_argument)),
        "}",
        optional(seq("if", field("condition", $._operand))),
      ),

    // `export softmax[T = [f16, bf16]];`
    export_item: ($) =>
      seq(
        repeat($.attribute),
        "export",
        field("path", choice($.identifier, $.path)),
        optional(
          field("arguments", seq("[", list(choice($.expression, $.named_argument)), "]")),
        ),
        ";",
      ),

    test_item: ($) => seq(repeat($.attribute), "test", field("name", $.string), field("body", $.block)),

    // Types

    type: ($) => choice($._plain_type, $.option_type),

    _plain_type: ($) => choice($._unmarked_type, $.mut_type),

    _unmarked_type: ($) => choice($._pointee, $.pointer_type),

    // What a pointer points to: a type that is no pointer itself.
    _pointee: ($) => choice($.named_type, $.parenthesized_type, $.tuple_type, $.function_type),

    // `f32`, `tile[f32, BM, BN]`, `T.acc`
    named_type: ($) =>
      seq(
        field("name", choice($.identifier, $.path)),
        optional(choice(field("arguments", $.subscripts), seq(".", field("member", $.identifier)))),
      ),

    pointer_type: ($) => seq("*", optional("mut"), choice($.pointer_type, $._pointee)),

    mut_type: ($) => seq("mut", $._unmarked_type),

    option_type: ($) => seq($._plain_type, "?"),

    parenthesized_type: ($) => seq("(", $.type, ")"),

    tuple_type: ($) => tuple($.type),

    function_type: ($) => seq("fn", "(", list($.type), ")", "->", field("result", $._plain_type)),

    // What may follow `as`, and pointer types among expressions: no brackets, they would index the value.
    _value_type: ($) =>
      seq(field("name", choice($.identifier, $.path)), optional(seq(".", field("member", $.identifier)))),

    _value_pointer_type: ($) =>
      seq(
        "*",
        optional("mut"),
        choice(alias($._value_pointer_type, $.pointer_type), alias($._value_type, $.named_type)),
      ),

    // Patterns

    pattern: ($) => choice($.identifier, $.mut_pattern, $.parenthesized_pattern, $.tuple_pattern),

    mut_pattern: ($) => seq("mut", $.identifier),

    parenthesized_pattern: ($) => seq("(", $.pattern, ")"),

    tuple_pattern: ($) => tuple($.pattern),

    // Statements

    block: ($) =>
      seq(
        "{",
        repeat(choice($.statement, ";")),
        optional(field("value", choice($._operand, $._block_like, $.lambda, $.return_expression))),
        "}",
      ),

    statement: ($) =>
      choice(
        $.let_statement,
        alias($._constant, $.const_item),
        $.assign_statement,
        $.expression_statement,
        $.return_statement,
        $.break_statement,
        $.continue_statement,
        $.for_statement,
        $.while_statement,
        $.assert_error_statement,
      ),

    let_statement: ($) =>
      seq(
        "let",
        field("pattern", $.pattern),
        optional(seq(":", field("type", $.type))),
        optional(seq("=", field("value", $.expression))),
        ";",
      ),

    assign_statement: ($) =>
      seq(
        field("place", $._operand),
        field("operator", choice("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")),
        field("value", $.expression),
        ";",
      ),

    // A block or `if` needs no semicolon; as the last thing in a block it is its value.
    expression_statement: ($) => choice(seq(choice($._operand, $._block_like), ";"), prec(-1, $._block_like)),

    return_statement: ($) => seq("return", optional($.expression), ";"),

    break_statement: (_) => seq("break", ";"),

    continue_statement: (_) => seq("continue", ";"),

    for_statement: ($) =>
      seq(
        repeat($.attribute),
        "for",
        field("pattern", $.pattern),
        "in",
        field("iterator", $._operand),
        field("body", $.block),
      ),

    while_statement: ($) =>
      seq(repeat($.attribute), "while", field("condition", $._operand), field("body", $.block)),

    assert_error_statement: ($) => seq("assert_error", field("code", $.string), field("body", $.block)),

    // Expressions. `expression` stands where its end is marked; block-likes and lambdas are never operands.

    expression: ($) => choice($._operand, $._block_like, $.lambda, $.function_type),

    _block_like: ($) => choice($.block, $.if_expression, $.if_let_expression),

    _operand: ($) =>
      choice($._term, alias($._comparison, $.binary_expression), alias($._logic, $.binary_expression)),

    _term: ($) =>
      choice(
        $._primary,
        $.unary_expression,
        alias($._arithmetic, $.binary_expression),
        $.cast_expression,
        alias($._value_pointer_type, $.pointer_type),
      ),

    _primary: ($) =>
      choice(
        $._name,
        $.path,
        $.integer,
        $.float,
        $.string,
        $.boolean,
        $.none,
        $.parenthesized_expression,
        $.tuple,
        $.array,
        $.index_expression,
        $.call_expression,
        $.member_expression,
      ),

    if_expression: ($) =>
      seq("if", field("condition", $._operand), field("then", $.block), optional($._else)),

    if_let_expression: ($) =>
      seq(
        "if",
        "let",
        field("name", $.identifier),
        "=",
        field("value", $._operand),
        field("then", $.block),
        optional($._else),
      ),

    _else: ($) => seq("else", field("else", $._block_like)),

    // `|a, b| a + b`
    lambda: ($) =>
      seq(
        field("parameters", $.lambda_parameters),
        field("body", choice($._operand, $._block_like, $.lambda)),
      ),

    lambda_parameters: ($) => choice("||", seq("|", list($.lambda_parameter), "|")),

    lambda_parameter: ($) => seq(field("pattern", $.pattern), optional(seq(":", field("type", $.type)))),

    // Only as the last thing in a block.
    return_expression: ($) => seq("return", optional($.expression)),

    _logic: ($) => binary($._operand, [PREC.or, "||"], [PREC.and, "&&"]),

    _comparison: ($) =>
      seq(
        field("left", $._term),
        field("operator", choice("==", "!=", "<", "<=", ">", ">=")),
        field("right", $._term),
      ),

    _arithmetic: ($) =>
      binary(
        $._term,
        [PREC.bit_or, "|"],
        [PREC.bit_xor, "^"],
        [PREC.bit_and, "&"],
        [PREC.shift, "<<", ">>"],
        [PREC.sum, "+", "-"],
        [PREC.product, "*", "/", "%"],
      ),

    cast_expression: ($) =>
      prec.left(
        PREC.cast,
        seq(
          field("value", $._term),
          "as",
          field(
            "type",
            choice(alias($._value_type, $.named_type), alias($._value_pointer_type, $.pointer_type)),
          ),
        ),
      ),

    unary_expression: ($) =>
      seq(field("operator", choice("-", "!")), field("operand", choice($._primary, $.unary_expression))),

    index_expression: ($) => seq(field("value", $._primary), field("subscripts", $.subscripts)),

    call_expression: ($) => seq(field("function", $._primary), field("arguments", $.arguments)),

    member_expression: ($) => seq(field("value", $._primary), ".", field("member", $.identifier)),

    parenthesized_expression: ($) => seq("(", $.expression, ")"),

    tuple: ($) => tuple($.expression),

    array: ($) => seq("[", list($.expression), "]"),

    arguments: ($) => seq("(", list(choice($.expression, $.named_argument)), ")"),

    // The contents of brackets after a value or a type: positions, slices, or compile-time arguments.
    subscripts: ($) => seq("[", list(choice($.expression, $.slice, $.named_argument)), "]"),

    named_argument: ($) => seq(field("name", $._name), "=", field("value", $.expression)),

    slice: ($) => seq(optional(field("from", $.expression)), ":", optional(field("to", $.expression))),

    // Names and literals

    // `std::math::gelu`
    path: ($) => seq($._modules, field("name", $.identifier)),

    _modules: ($) => repeat1(seq(field("module", $.identifier), "::")),

    // `assert_error` is a word of the language only before a string, where a statement starts.
    _name: ($) => choice($.identifier, alias("assert_error", $.identifier)),

    _self: ($) => alias("self", $.identifier),

    identifier: (_) => /[\p{XID_Start}_]\p{XID_Continue}*/,

    integer: (_) =>
      token(
        choice(
          /[0-9][0-9_]*/,
          /0[xX][0-9a-fA-F_]*[0-9a-fA-F][0-9a-fA-F_]*/,
          /0[bB][01_]*[01][01_]*/,
          /0[oO][0-7_]*[0-7][0-7_]*/,
        ),
      ),

    float: (_) =>
      token(
        choice(/[0-9][0-9_]*\.[0-9][0-9_]*([eE][+-]?[0-9][0-9_]*)?/, /[0-9][0-9_]*[eE][+-]?[0-9][0-9_]*/),
      ),

    boolean: (_) => choice("true", "false"),

    none: (_) => "None",

    string: ($) =>
      seq('"', repeat(choice($.string_content, $.escape_sequence)), token.immediate('"')),

    // Before comments, which are allowed between any two tokens.
    string_content: (_) => token.immediate(prec(1, /[^"\\\n]+/)),

    escape_sequence: (_) => token.immediate(/\\([ntr0\\"]|u\{[0-9a-fA-F]+\})/),

    // `///`, but not `////`, documents what follows.
    doc_comment: (_) => token(/\/\/\/([^\/\n][^\n]*)?/),

    comment: (_) => token(choice(/\/\/([^\/\n][^\n]*)?/, /\/\/\/\/[^\n]*/)),
  },
});
