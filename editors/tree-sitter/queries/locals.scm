; Scopes and what is declared in them.

[
  (source_file)
  (struct_item)
  (function_item)
  (kernel_item)
  (test_item)
  (block)
  (for_statement)
  (if_let_expression)
  (lambda)
] @local.scope

[
  (function_item name: (identifier) @local.definition)
  (kernel_item name: (identifier) @local.definition)
  (struct_item name: (identifier) @local.definition)
  (const_item name: (identifier) @local.definition)
  (use_item path: (identifier) @local.definition !alias)
  (use_item path: (path name: (identifier) @local.definition) !alias)
  (use_item alias: (identifier) @local.definition)
  (use_group (identifier) @local.definition)
]

[
  (compile_time_parameter name: (identifier) @local.definition)
  (parameter name: (identifier) @local.definition)
  (scratch_argument name: (identifier) @local.definition)
  (lambda_parameter pattern: (identifier) @local.definition)
]

[
  (let_statement pattern: (identifier) @local.definition)
  (for_statement pattern: (identifier) @local.definition)
  (if_let_expression name: (identifier) @local.definition)
  (mut_pattern (identifier) @local.definition)
  (parenthesized_pattern (identifier) @local.definition)
  (tuple_pattern (identifier) @local.definition)
]

(identifier) @local.reference
