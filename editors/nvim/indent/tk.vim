" Owns the indentation of a new line: four columns for each bracket that is open. `tk fmt` does the rest.
if exists('b:did_indent') | finish | endif
let b:did_indent = 1

setlocal indentexpr=TkIndent()
setlocal indentkeys=0{,0},0),0],o,O
let b:undo_indent = 'setlocal indentexpr< indentkeys<'

if exists('*TkIndent') | finish | endif

" The line without its strings and its comment.
function! s:code(lnum) abort
  return substitute(substitute(getline(a:lnum), '"\%([^"\\]\|\\.\)*"', '""', 'g'), '//.*$', '', '')
endfunction

let s:clause = '\%(grid\|launch\|require\|prefer\|tune\|alias\|scratch\)'

function! TkIndent() abort
  let l:before = prevnonblank(v:lnum - 1)
  if l:before == 0 | return 0 | endif
  let l:indent = indent(l:before)
  if s:code(l:before) =~# '[{(\[]\s*\%(|[^|]*|\s*\)\?$'
    let l:indent += shiftwidth()
  elseif s:code(l:before) =~# '^\%()\|\](.*)\|\%(@\w\+\s\+\)*kernel\>.*)\)\s*$' && getline(v:lnum) !~# '^\s*{'
    " The clauses of a kernel.
    let l:indent += shiftwidth()
  endif
  if getline(v:lnum) =~# '^\s*[]})]'
    let l:indent -= shiftwidth()
  elseif getline(v:lnum) =~# '^\s*{\s*$' && s:code(l:before) =~# '^\s\+\%([)}]\|' . s:clause . '\s*(.*)\)\s*$'
    " The body after the clauses.
    let l:indent -= shiftwidth()
  endif
  return max([l:indent, 0])
endfunction
