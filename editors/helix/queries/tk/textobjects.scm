(function_item body: (_) @function.inside) @function.around
(kernel_item body: (_) @function.inside) @function.around
(lambda body: (_) @function.inside) @function.around
(struct_item body: (_) @class.inside) @class.around
(test_item body: (_) @test.inside) @test.around

(parameters ((parameter) @parameter.inside . ","? @parameter.around) @parameter.around)
(compile_time_parameters ((compile_time_parameter) @parameter.inside . ","? @parameter.around) @parameter.around)
(arguments ((_) @parameter.inside . ","? @parameter.around) @parameter.around)
(subscripts ((_) @parameter.inside . ","? @parameter.around) @parameter.around)
(array ((_) @entry.inside . ","? @entry.around) @entry.around)

[(comment) (doc_comment)] @comment.inside
[(comment) (doc_comment)]+ @comment.around
