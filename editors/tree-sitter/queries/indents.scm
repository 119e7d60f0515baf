; For nvim-treesitter.

[
  (block)
  (struct_body)
  (tune_rows)
  (tune_row)
  (use_group)
  (compile_time_parameters)
  (parameters)
  (arguments)
  (subscripts)
  (array)
  (tuple)
  (tuple_type)
  (tuple_pattern)
  (parenthesized_expression)
] @indent.begin

; The rest of a statement on further lines.
[
  (let_statement)
  (const_item)
  (assign_statement)
  (return_statement)
] @indent.begin

["}" ")" "]"] @indent.end
["}" ")" "]"] @indent.branch

[
  (comment)
  (doc_comment)
] @indent.auto
