(function_item body: (_ "{" (_)* @function.inside "}")) @function.around
(kernel_item body: (_ "{" (_)* @function.inside "}")) @function.around
(test_item body: (_ "{" (_)* @function.inside "}")) @function.around
(struct_item body: (_ "{" (_)* @class.inside "}")) @class.around
[(comment) (doc_comment)]+ @comment.around
