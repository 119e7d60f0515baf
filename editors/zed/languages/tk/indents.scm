(_ "[" "]" @end) @indent
(_ "{" "}" @end) @indent
(_ "(" ")" @end) @indent

[
  (let_statement)
  (const_item)
  (assign_statement)
  (return_statement)
] @indent
