; Written by `editors/tree-sitter/adapt.py`. A later pattern wins over an earlier one.

(identifier) @variable

; By convention COMPILE_TIME and CamelCase.
((identifier) @constant
  (#match? @constant "^_*[A-Z][A-Z0-9_]*$"))

((identifier) @type
  (#match? @type "^_*[A-Z][A-Za-z0-9_]*[a-z][A-Za-z0-9_]*$"))

; Types

(named_type name: (identifier) @type)
(named_type name: (path name: (identifier) @type))

; The element types are values, too.
((identifier) @type.builtin
  (#any-of? @type.builtin
    "bool" "i8" "i16" "i32" "i64" "u8" "u16" "u32" "u64" "f8e4m3" "f8e5m2" "f8e4m3fnuz" "f8e5m2fnuz" "f16" "bf16"
    "f32" "f64" "e2m1" "e8m0"))

(named_type name: (identifier) @type.builtin
  (#any-of? @type.builtin
    "tile" "view" "shape" "int" "sint" "uint" "float" "f8" "number" "dtype"))

; Names with a meaning

((identifier) @constant.builtin
  (#any-of? @constant.builtin "inf" "nan"))

((identifier) @variable.builtin
  (#eq? @variable.builtin "self"))

(member_expression value: (identifier) @variable.builtin
  (#any-of? @variable.builtin "target" "device"))

; Paths

(path module: (identifier) @namespace)
(use_item module: (identifier) @namespace)
(use_item path: (identifier) @namespace)

; Calls, also with compile-time arguments

(call_expression function: (identifier) @function)
(call_expression function: (path name: (identifier) @function))
(call_expression function: (index_expression value: (identifier) @function))
(call_expression function: (index_expression value: (path name: (identifier) @function)))

(member_expression member: (identifier) @variable.other.member)
(named_type member: (identifier) @variable.other.member)
(call_expression function: (member_expression member: (identifier) @function.method))
(call_expression
  function: (index_expression value: (member_expression member: (identifier) @function.method)))

; `Point(x = 1.0)`
((call_expression function: (identifier) @constructor)
  (#match? @constructor "^_*[A-Z][A-Za-z0-9_]*[a-z][A-Za-z0-9_]*$"))

; Declarations

(const_item name: (identifier) @constant)
(struct_item name: (identifier) @type)
(function_item name: (identifier) @function)
(kernel_item name: (identifier) @function)
(struct_body (function_item name: (identifier) @function.method))
(export_item path: (identifier) @function)
(export_item path: (path name: (identifier) @function))

(compile_time_parameter name: (identifier) @constant)
(parameter name: (identifier) @variable.parameter)
((parameter name: (identifier) @variable.builtin)
  (#eq? @variable.builtin "self"))
(lambda_parameter pattern: (identifier) @variable.parameter)
(lambda_parameter pattern: (_ (identifier) @variable.parameter))
(field name: (identifier) @variable.other.member)
(named_argument name: (identifier) @variable.parameter)
(scratch_argument name: (identifier) @variable.parameter)

(attribute "@" @attribute name: (identifier) @attribute)
(clause name: (identifier) @keyword)

; Words

["as" "in"] @keyword.operator
["if" "else"] @keyword.control.conditional
["for" "while" "break" "continue"] @keyword.control.repeat
(for_statement "in" @keyword.control.repeat)
["return"] @keyword.control.return
["fn" "kernel"] @keyword.function
["struct"] @keyword.storage.type
["use" "export"] @keyword.control.import
(use_item "as" @keyword.control.import)
["const" "let" "test" "assert_error"] @keyword
["mut"] @keyword.storage.modifier
(parameter "const" @keyword.storage.modifier)

; Literals

(integer) @constant.numeric.integer
(float) @constant.numeric.float
(boolean) @constant.builtin.boolean
(none) @constant.builtin
(string) @string
(escape_sequence) @constant.character.escape

; Operators and punctuation

[
  "+" "-" "*" "/" "%" "&" "|" "^" "<<" ">>" "&&" "||" "!" "==" "!=" "<" "<=" ">" ">=" "=" "+=" "-=" "*=" "/=" "%="
  "&=" "|=" "^=" "<<=" ">>=" "->" "?"
] @operator

["(" ")" "[" "]" "{" "}"] @punctuation.bracket
(lambda_parameters ["|" "||"] @punctuation.bracket)
["," ";" ":" "::" "."] @punctuation.delimiter

(comment) @comment.line
(doc_comment) @comment.line.documentation
