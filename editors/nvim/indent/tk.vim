" Owns the indentation of a line: what `tk fmt` writes for a line that begins there. May assume nothing about the text,
" which is often incomplete. Plain Vim script, for Vim and Neovim.
if exists('b:did_indent') | finish | endif
let b:did_indent = 1

setlocal indentexpr=TkIndent()
setlocal indentkeys=0{,0},0),0],o,O
let b:undo_indent = 'setlocal indentexpr< indentkeys<'

if exists('*TkIndent') | finish | endif

let s:item = '^\%(@\w\+\s\+\)*\%(\%(use\|const\|struct\|fn\|kernel\)\>\|export\s\+\h\|test\s*"\)'
let s:clause = '^\%(grid\|launch\|require\|prefer\|tune\|alias\|scratch\)\s*('
" A string, which ends with its line at the latest, or a comment.
let s:text = '"\%([^"\\]\|\\.\)*\%("\|\\\?$\)\|//.*$'
" How tight the operators between two operands bind.
let s:bindings = {'||': 1, '&&': 2, '==': 3, '!=': 3, '<': 3, '<=': 3, '>': 3, '>=': 3, '|': 4, '^': 5, '&': 6, '<<': 7,
  \ '>>': 7, '+': 8, '-': 8, '*': 9, '/': 9, '%': 9, '.': 10}

" The line without its indentation, its comment, and what its strings hold.
function! s:code(lnum) abort
  let l:code = substitute(getline(a:lnum), s:text, '\=submatch(0)[0] ==# "/" ? "" : "\"\""', 'g')
  return substitute(l:code, '^\s\+\|\s\+$', '', 'g')
endfunction

" The nearest line with code from a line on, in steps of 1 or -1; 0 if there is none.
function! s:near(lnum, step) abort
  let l:lnum = a:lnum
  while l:lnum >= 1 && l:lnum <= line('$')
    if getline(l:lnum) !~# '^\s*\%(//.*\)\?$' | return l:lnum | endif
    let l:lnum += a:step
  endwhile
  return 0
endfunction

" Code without the brackets that are in pairs, and what they enclose.
function! s:flat(code) abort
  let [l:code, l:last] = [a:code, '']
  while l:code !=# l:last
    let [l:code, l:last] = [substitute(l:code, '([^][(){}]*)\|\[[^][(){}]*\]\|{[^][(){}]*}', '', 'g'), l:code]
  endwhile
  return l:code
endfunction

" How many brackets of flat code are closed, and how many are opened.
function! s:count(flat) abort
  return [len(substitute(a:flat, '[^])}]', '', 'g')), len(substitute(a:flat, '[^[({]', '', 'g'))]
endfunction

" The innermost bracket that is open where a line starts: its line, 0 if there is none, and its index in the code.
function! s:open(lnum) abort
  let [l:lnum, l:pending] = [s:near(a:lnum - 1, -1), 0]
  while l:lnum > 0
    let l:code = s:code(l:lnum)
    let [l:closed, l:opened] = s:count(s:flat(l:code))
    if l:opened > l:pending
      let l:at = len(l:code)
      while l:at > 0
        let l:at -= 1
        if l:code[l:at] =~# '[])}]'
          let l:pending += 1
        elseif l:code[l:at] =~# '[[({]'
          if l:pending == 0 | return [l:lnum, l:at] | endif
          let l:pending -= 1
        endif
      endwhile
    endif
    if getline(l:lnum) =~# s:item | break | endif
    let l:pending += l:closed - l:opened
    let l:lnum = s:near(l:lnum - 1, -1)
  endwhile
  return [0, 0]
endfunction

" How tight the operator that code starts with binds; 0 if it starts with none.
function! s:binding(code) abort
  return get(s:bindings, matchstr(a:code, '^\%(||\|&&\|[=!<>]=\|<<\|>>\|->\|[|^&+*/%<>.-]\)'), 0)
endfunction

" How many levels a line is below the line that its element starts on. An element breaks before its loosest operators;
" what is between two of them is a level deeper if it breaks too.
function! s:level(lnum, top) abort
  let l:own = s:binding(s:code(a:lnum))
  if l:own == 0 | return 1 | endif
  let [l:looser, l:least, l:depth, l:lnum, l:seen] = [{}, l:own, 0, s:near(a:lnum - 1, -1), 0]
  while l:lnum > a:top
    let l:code = s:code(l:lnum)
    if l:depth == 0 && l:code =~# '[,;{}([]$' | break | endif
    " An operator that an element starts with is a prefix, or the start of a lambda.
    if l:seen > 0 && l:seen < l:least
      let [l:least, l:looser[l:seen]] = [l:seen, 1]
    endif
    let [l:closed, l:opened] = s:count(s:flat(l:code))
    let l:depth += l:closed - l:opened
    let l:seen = l:depth == 0 ? s:binding(l:code) : 0
    if a:top == 0 && getline(l:lnum) =~# s:item | break | endif
    let l:lnum = s:near(l:lnum - 1, -1)
  endwhile
  let [l:least, l:depth, l:lnum] = [l:own, 0, a:lnum]
  while l:lnum > 0
    let l:code = s:code(l:lnum)
    let [l:closed, l:opened] = s:count(s:flat(l:code))
    if l:closed > l:depth | break | endif
    let l:depth += l:opened - l:closed
    if l:depth == 0 && l:code =~# '[,;]$' || l:depth == 1 && l:code =~# '{$' | break | endif
    let l:lnum = s:near(l:lnum + 1, 1)
    let l:binding = l:depth == 0 && l:lnum > 0 ? s:binding(s:code(l:lnum)) : 0
    if l:binding > 0 && l:binding < l:least
      let [l:least, l:looser[l:binding]] = [l:binding, 1]
    endif
  endwhile
  return 1 + len(l:looser)
endfunction

" Whether a bracket only encloses an expression: it is neither a call nor a tuple.
function! s:is_group(open) abort
  let [l:lnum, l:at] = a:open
  let l:code = s:code(l:lnum)
  if l:code[l:at] !=# '(' | return 0 | endif
  let l:before = strpart(l:code, 0, l:at)
  if l:before ==# '' | let l:before = s:code(s:near(l:lnum - 1, -1)) | endif
  if l:before =~# '[])}"]\s*$' || l:before =~# '\w\s*$' && l:before !~# '\<\%(as\|else\|if\|in\|return\|while\)\s*$'
    return 0
  endif
  let [l:depth, l:lnum] = [0, s:near(l:lnum + 1, 1)]
  while l:lnum > 0
    let l:flat = s:flat(s:code(l:lnum))
    let [l:closed, l:opened] = s:count(l:flat)
    if l:closed > l:depth | return 1 | endif
    if l:depth == 0 && l:opened == 0 && l:flat =~# ',' | return 0 | endif
    let l:depth += l:opened - l:closed
    if l:depth == 0 && l:flat =~# ',$' | return 0 | endif
    let l:lnum = s:near(l:lnum + 1, 1)
  endwhile
  return 1
endfunction

" Whether a bracket encloses the rows of a `tune` clause.
function! s:is_rows(open) abort
  let l:before = strpart(s:code(a:open[0]), 0, a:open[1])
  if l:before =~# '^)\s*$'
    let l:open = s:open(a:open[0])
    let l:before = strpart(s:code(l:open[0]), 0, l:open[1]) . '()'
  endif
  return l:before =~# '\<tune\s*(.*)\s*$'
endfunction

" Whether code continues what is before its line.
function! s:continues(code, lnum, open) abort
  let l:before = s:code(s:near(a:lnum - 1, -1))
  if l:before =~# '[,;{([]$' || l:before ==# ''
    return 0
  elseif l:before =~# '}$'
    return a:code =~# '^\%([+/%^.]\|&&\|||\|[=!<>]=\|<<\|>>\|as\>\)'
      \ || (a:open[0] == 0 ? a:code =~# '^{\|' . s:clause[1:] : a:code =~# '^if\>' && s:is_rows(a:open))
  endif
  return a:open[0] > 0 || a:code !~# s:item
endfunction

function! TkIndent() abort
  let l:open = s:open(v:lnum)
  let l:indent = l:open[0] > 0 ? indent(l:open[0]) : 0
  let [l:lnum, l:code] = [v:lnum, s:code(v:lnum)]
  if l:open[0] > 0
    if l:code =~# '^[])}]' | return l:indent | endif
    let l:indent += shiftwidth()
  endif
  let l:is_comment = getline(v:lnum) =~# '^\s*//'
  if l:is_comment
    " A comment belongs to what follows it.
    let l:lnum = s:near(v:lnum, 1)
    let l:code = l:lnum > 0 ? s:code(l:lnum) : ''
  endif
  if l:code =~# '^[])}]' || !s:continues(l:code, v:lnum, l:open)
    return l:indent
  elseif l:code =~# '^{'
    return l:indent + (l:is_comment ? shiftwidth() : 0)
  elseif l:code ==# ''
    return l:indent + shiftwidth()
  elseif l:open[0] > 0 && strpart(s:code(l:open[0]), l:open[1] + 1) !~# '^\s*\%(|[^|]*|\s*\)\?$'
    return l:indent
  endif
  return l:indent + shiftwidth() * (s:level(l:lnum, l:open[0]) - (l:open[0] > 0 && s:is_group(l:open) ? 1 : 0))
endfunction
