(doc_comment) @annotation

(function_item "fn" @context name: (_) @name) @item
(kernel_item "kernel" @context name: (_) @name) @item
(struct_item "struct" @context name: (_) @name) @item
(field name: (_) @name) @item
(source_file (const_item "const" @context name: (_) @name) @item)
(export_item "export" @context path: (_) @name) @item
(test_item "test" @context name: (_) @name) @item
