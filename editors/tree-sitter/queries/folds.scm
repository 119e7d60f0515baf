; What has brackets around it, as `tk lsp` folds.

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
] @fold

(use_item)+ @fold
