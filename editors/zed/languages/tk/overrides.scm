(string) @string
[(comment) (doc_comment)] @comment
