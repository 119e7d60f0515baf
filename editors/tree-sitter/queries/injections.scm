((comment) @injection.content
  (#set! injection.language "comment"))

; Documentation is Markdown after its slashes. `#offset!` is last: tree_sitter 0.26 for Python crashes if it is not.
((doc_comment) @injection.content
  (#set! injection.language "markdown")
  (#set! injection.combined)
  (#offset! @injection.content 0 3 0 0))
