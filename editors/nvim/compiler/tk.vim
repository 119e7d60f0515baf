" Owns `:make` for a file: `tk check` fills the quickfix list. `g:tk_command` is the command, if it is not on the path.
if exists('current_compiler') | finish | endif
let current_compiler = 'tk'

execute 'CompilerSet makeprg=' . escape(get(g:, 'tk_command', 'tk') . ' check --message-format short %:S', ' \|"')
" `FILE:LINE:COLUMN: error[E0201]: MESSAGE`; all else says nothing about a place.
CompilerSet errorformat=%f:%l:%c:\ %t%*[a-z]%m,%-G%.%#
