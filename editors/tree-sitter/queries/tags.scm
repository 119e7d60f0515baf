(struct_body (function_item name: (identifier) @name) @definition.method)

((doc_comment)* @doc
  .
  (function_item name: (identifier) @name) @definition.function
  (#strip! @doc "^///\\s?")
  (#select-adjacent! @doc @definition.function))

((doc_comment)* @doc
  .
  (kernel_item name: (identifier) @name) @definition.function
  (#strip! @doc "^///\\s?")
  (#select-adjacent! @doc @definition.function))

((doc_comment)* @doc
  .
  (struct_item name: (identifier) @name) @definition.class
  (#strip! @doc "^///\\s?")
  (#select-adjacent! @doc @definition.class))

(source_file (const_item name: (identifier) @name) @definition.constant)

(call_expression function: (identifier) @name) @reference.call
(call_expression function: (path name: (identifier) @name)) @reference.call
(call_expression function: (index_expression value: (identifier) @name)) @reference.call
(call_expression function: (index_expression value: (path name: (identifier) @name))) @reference.call
(call_expression function: (member_expression member: (identifier) @name)) @reference.call

(export_item path: (identifier) @name) @reference.call
(export_item path: (path name: (identifier) @name)) @reference.call
