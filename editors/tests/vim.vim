" Tests the language in Vim 9, with the files that Neovim uses, too: run as
"     TK=.. vim -es -u NONE -S editors/tests/vim.vim
" Prints a line for each test and `vim: N passed, M failed`; the exit code is 1 if one failed. The server is tested
" through ALE, which Debian has as vim-ale; outside of CI its tests are left out without it.

set nocompatible hidden noswapfile viminfo=
let s:here = expand('<sfile>:p:h')
let s:root = fnamemodify(s:here, ':h:h')
let s:tk = fnamemodify(empty($TK) ? s:root . '/target/debug/tk' : $TK, ':p')
let s:folder = tempname()
let [s:passed, s:failed, s:told] = [0, 0, []]
" Without a copy to the terminal.
set shellpipe=>%s\ 2>&1
call mkdir(s:folder . '/.git', 'p')
for s:name in ['main.tk', 'helpers.tk']
  call writefile(readfile(s:here . '/workspace/' . s:name), s:folder . '/' . s:name)
endfor

function! s:tell(line) abort
  call add(s:told, a:line)
endfunction

" Runs a function as a test: it throws, or adds to v:errors.
function! s:test(name, run) abort
  let v:errors = []
  try
    call a:run()
  catch
    call add(v:errors, v:throwpoint . ': ' . v:exception)
  endtry
  if empty(v:errors)
    let s:passed += 1
    call s:tell('ok ' . a:name)
  else
    let s:failed += 1
    call s:tell('not ok ' . a:name)
    for l:error in v:errors
      call s:tell('  ' . l:error)
    endfor
  endif
endfunction

function! s:wait(what, check) abort
  for l:try in range(600)
    if a:check() | return | endif
    sleep 50m
  endfor
  throw 'no ' . a:what . ' in 30 s'
endfunction

function! s:open(name) abort
  execute 'silent edit! ' . fnameescape(a:name)
endfunction

" Puts the cursor on the first place of a text.
function! s:go(text) abort
  call cursor(1, 1)
  if search('\V' . escape(a:text, '\'), 'cW') == 0 | throw 'there is no ' . a:text | endif
endfunction

function! s:group(text, inside = '') abort
  call s:go(a:text)
  if a:inside !=# '' | call search('\V' . a:inside, 'cW') | endif
  return synIDattr(synID(line('.'), col('.'), 1), 'name')
endfunction

" Indents all of the buffer, and returns the lines that differ from before.
function! s:reindent() abort
  let l:expected = getline(1, '$')
  silent %substitute/^ *//e
  silent normal! gg=G
  let l:found = getline(1, '$')
  let l:other = filter(range(len(l:expected)), 'l:expected[v:val] !=# l:found[v:val]')
  return map(l:other, 'expand("%:t") . ":" . (v:val + 1) . l:expected[v:val] . " -> " . l:found[v:val]')
endfunction

function! s:options() abort
  call s:open(s:folder . '/main.tk')
  call assert_equal(['tk', '// %s', 4, 1], [&filetype, &commentstring, &shiftwidth, &expandtab])
  setfiletype text
  set filetype=text
  call assert_equal(['text', ''], [&filetype, &indentexpr])
endfunction

function! s:colors() abort
  call s:open(s:here . '/grammar/sample.tk')
  for [l:text, l:inside, l:group] in [
    \ ['//// A line', 'let x', 'tkComment'],
    \ ['/// A kernel', 'fn if', 'tkDoc'],
    \ ['// keyword', '1e-3', 'tkComment'],
    \ ['use std', '', 'tkInclude'],
    \ ['@fast', '', 'tkAttribute'],
    \ ['kernel sample', '', 'tkFunctionWord'],
    \ ['kernel sample', 'sample', 'tkDefinition'],
    \ ['T: f16', '', 'tkCompileTime'],
    \ ['T: f16', 'f16', 'tkType'],
    \ ['x: view', 'view', 'tkType'],
    \ ['mut u32', '', 'tkStorage'],
    \ ['f8e4m3)', '', 'tkType'],
    \ ['grid(cdiv', '', 'tkClause'],
    \ ['grid(cdiv', 'cdiv', 'tkCall'],
    \ ['BM % 16', '', 'tkCompileTime'],
    \ ['shape[1] <=', '', 'tkMember'],
    \ ['scratch(count', '', 'tkClause'],
    \ ['let (i', '', 'tkStorage'],
    \ ['for k', 'in ', 'tkRepeat'],
    \ ['-inf', 'inf', 'tkFloat'],
    \ ['as T.acc', '', 'tkOperatorWord'],
    \ ['T.acc', 'acc', 'tkMember'],
    \ ['2.5e-1', '', 'tkFloat'],
    \ ['0x80', '', 'tkNumber'],
    \ ['true ||', '', 'tkBoolean'],
    \ ['grid::grouped', '', 'tkModule'],
    \ ['None', '', 'tkConstant'],
    \ ['export sample', '', 'tkTestWord'],
    \ ['struct Pair', '', 'tkStructure'],
    \ ['struct Pair', 'Pair', 'tkStructName'],
    \ ['fn swap', 'swap', 'tkDefinition'],
    \ ['test "a', '', 'tkTestWord'],
    \ ['test "a', 'quoted', 'tkString'],
    \ ['\u{e9}', '', 'tkEscape'],
    \ ['assert_error', '', 'tkTestWord'],
    \ ['launch(grid = 1', 'grid', ''],
    \ ['let after', '', 'tkStorage'],
    \ ]
    call assert_equal(l:group, s:group(l:text, l:inside), l:text . ' ' . l:inside)
  endfor
endfunction

function! s:indentation() abort
  let l:lines = 0
  for l:path in sort(glob(s:root . '/examples/**/*.tk', 0, 1) + glob(s:root . '/stdlib/**/*.tk', 0, 1))
    call s:open(l:path)
    let l:lines += line('$')
    call assert_equal([], s:reindent())
    bwipeout!
  endfor
  call assert_true(l:lines > 5000, 'only ' . l:lines . ' lines')
endfunction

function! s:other_indentation() abort
  for l:text in [
    \ ['fn f() -> bool {', '    let q = a', '            // why', '            && b // trailing', '        // and', '        || c;', '}'],
    \ ['fn f() {', '    y[row] = -(', '        aaa * bbb', '        + ccc', '    );', '    x', '        .load(1)', '        .store(2);', '}'],
    \ ['fn f() {', '    if a', '        && b', '    {', '        1', '    } else {', '        2', '    }', '}'],
    \ ['kernel k(x: i32)', '    // The grid.', '    grid(1)', '    tune(', '        key = x,', '    ) {', '        { A = 1 }',
    \   '            if target.has_tma,', '    }', '    // The end.', '{', '    return;', '}'],
    \ ['fn f() {', '    let s = "// {"; // {', '    let t = "open {', '        ;', '    let u = 1;', '}'],
    \ ]
    enew
    set filetype=tk
    call setline(1, l:text)
    call assert_equal([], s:reindent())
    bwipeout!
  endfor
endfunction

function! s:typing() abort
  enew
  set filetype=tk
  execute "normal! i@fast kernel k(x: i32)\<CR>grid(1)\<CR>{\<CR>let a = f(\<CR>1,\<CR>);\<CR>if a {\<CR>b;\<CR>}"
  call assert_equal(['@fast kernel k(x: i32)', '    grid(1)', '{', '    let a = f(', '        1,', '    );', '    if a {', '        b;', '    }'], getline(1, '$'))
  for l:text in [['}', ')', '{{{((', 'fn f( {'], ['"', '+ + +', '&& a', '// a'], ['tune(', '{', '}', 'if', '']]
    silent %delete
    call setline(1, l:text)
    silent normal! gg=G
  endfor
  bwipeout!
endfunction

function! s:make() abort
  let g:tk_command = s:tk
  call s:open(s:folder . '/main.tk')
  silent %substitute/program_id(0) \* BLOCK/program_id(0) * BLOK/
  silent write
  compiler tk
  silent make!
  let l:found = getqflist()
  call assert_equal(1, len(l:found))
  call assert_equal(['main.tk', 10, 33, 'e'], [fnamemodify(bufname(l:found[0].bufnr), ':t'), l:found[0].lnum, l:found[0].col, l:found[0].type])
  call assert_match('cannot find `BLOK`', l:found[0].text)
  silent undo
  silent write
  silent make!
  call assert_equal([], getqflist())
endfunction

function! s:format() abort
  call s:open(s:folder . '/main.tk')
  let l:expected = getline(1, '$')
  silent %substitute/let start = /let   start=/
  execute 'silent %!' . shellescape(s:tk) . ' fmt -'
  call assert_equal(l:expected, getline(1, '$'))
  edit!
endfunction

" ALE does nothing in Ex mode: another Vim runs this file, with TK_ALE for what went wrong.
function! s:ale() abort
  let $TK_ALE = s:folder . '/ale.errors'
  call system(shellescape(v:progpath) . ' -N -u NONE -T dumb --not-a-term -S ' . shellescape(s:here . '/vim.vim') . ' < /dev/null')
  let v:errors += readfile($TK_ALE)
  let $TK_ALE = ''
endfunction

function! s:with_ale() abort
  " The setup of the page, with the command that is tested.
  let l:page = readfile(s:root . '/docs/editors/vim.md')
  let l:start = index(l:page, "call ale#linter#Define('tk', {")
  let l:setup = l:page[l:start : index(l:page, '```', l:start) - 1]
  call map(l:setup, {_, line -> substitute(line, "'executable': \\zs'tk'", string(s:tk), '')})
  call writefile(l:setup, s:folder . '/ale.vim')
  packadd ale
  execute 'source ' . s:folder . '/ale.vim'
  call s:open(s:folder . '/main.tk')
  silent %substitute/program_id(0) \* BLOCK/program_id(0) * BLOK/
  ALELint
  call s:wait('diagnostic', {-> !empty(ale#engine#GetLoclist(bufnr('')))})
  let l:found = ale#engine#GetLoclist(bufnr(''))
  call assert_equal([10, 33, 'E'], [l:found[0].lnum, l:found[0].col, l:found[0].type])
  call assert_match('cannot find `BLOK`', l:found[0].text)
  silent undo
  ALELint
  call s:wait('text without diagnostics', {-> empty(ale#engine#GetLoclist(bufnr('')))})
  silent write
  call s:go('twice(values)')
  ALEGoToDefinition
  call s:wait('definition', {-> expand('%:t') ==# 'helpers.tk'})
  call assert_match('^fn twice', getline('.'))
endfunction

execute 'set runtimepath^=' . fnameescape(s:root . '/editors/nvim')
filetype plugin indent on
syntax on

if !empty($TK_ALE)
  let v:errors = []
  try
    call s:with_ale()
  catch
    call add(v:errors, v:throwpoint . ': ' . v:exception)
  endtry
  call writefile(v:errors, $TK_ALE)
  call delete(s:folder, 'rf')
  qall!
endif

call s:test('a .tk file has its type and options', function('s:options'))
call s:test('words have their colors', function('s:colors'))
call s:test('indentation agrees with the formatter', function('s:indentation'))
call s:test('indentation of what the formatter breaks in other ways', function('s:other_indentation'))
call s:test('indentation of a text that is being written', function('s:typing'))
call s:test(':make fills the quickfix list', function('s:make'))
call s:test('a filter formats the buffer', function('s:format'))
if !empty(globpath(&packpath, 'pack/*/opt/ale'))
  call s:test('ALE shows diagnostics, and goes to definitions', function('s:ale'))
else
  call s:tell('vim: ALE is missing; the server was not tested')
  if $CI ==# 'true' | let s:failed += 1 | endif
endif

call s:tell(printf('vim: %d passed, %d failed', s:passed, s:failed))
call delete(s:folder, 'rf')
" Only commands such as `:print` write to standard output here.
enew!
call setline(1, s:told)
%print
execute s:failed == 0 ? 'qall!' : 'cquit 1'
