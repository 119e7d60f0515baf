" Owns the colours that need no language server. The words are those of `spec/01-lexical.md` and `spec/02-types.md`.
if exists('b:current_syntax') | finish | endif

syntax case match
syntax keyword tkConditional if else
syntax keyword tkRepeat for in while break continue
syntax keyword tkStatement return
syntax keyword tkOperatorWord as
syntax keyword tkStructure struct
syntax keyword tkStorage let const mut
syntax keyword tkInclude use
syntax keyword tkBoolean true false
syntax keyword tkConstant None
syntax keyword tkFunctionWord fn kernel nextgroup=tkDefinition skipwhite
syntax match tkDefinition /\h\w*/ contained

" Members come last of what starts with a name, so that `x.shape` and `T.max` stay names.
syntax match tkCompileTime /\<_*[A-Z][A-Z0-9_]*\>/
syntax match tkStructName /\<_*[A-Z]\w*[a-z]\w*\>/
syntax keyword tkType bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2 f8e4m3fnuz f8e5m2fnuz e2m1 e8m0
syntax match tkType /\<\%(tile\|view\)\ze\[/
syntax match tkFloat /\<\%(inf\|nan\)\>/
syntax match tkModule /\<\h\w*\ze::/
syntax match tkCall /\<\h\w*\ze(/
syntax match tkClause /^\s\+\zs\%(grid\|launch\|tune\|require\|prefer\|alias\|scratch\)\ze\s*(/
syntax match tkTestWord /\<\%(test\|assert_error\)\ze\s*"/
syntax match tkTestWord /^\s*\zsexport\ze\s\+\h/
syntax match tkMember /\.\s*\zs\h\w*/
syntax match tkAttribute /@\h\w*/

syntax match tkNumber /\<\d[0-9_]*\>/
syntax match tkNumber /\<0[xX][0-9a-fA-F_]\+\>/
syntax match tkNumber /\<0[bB][01_]\+\>/
syntax match tkNumber /\<0[oO][0-7_]\+\>/
syntax match tkFloat /\<\d[0-9_]*\.\d[0-9_]*\%([eE][+-]\?\d[0-9_]*\)\?\>/
syntax match tkFloat /\<\d[0-9_]*[eE][+-]\?\d[0-9_]*\>/
syntax match tkEscape /\\\%([ntr0\\"]\|u{\x\+}\)/ contained
syntax region tkString start=/"/ skip=/\\./ end=/"/ end=/$/ contains=tkEscape oneline
syntax keyword tkTodo TODO FIXME contained
syntax match tkComment /\/\/.*$/ contains=tkTodo,@Spell
syntax match tkDoc /\/\/\/\%(\/\)\@!.*$/ contains=tkTodo,@Spell

highlight default link tkConditional Conditional
highlight default link tkRepeat Repeat
highlight default link tkStatement Statement
highlight default link tkOperatorWord Keyword
highlight default link tkStructure Structure
highlight default link tkStorage StorageClass
highlight default link tkInclude Include
highlight default link tkBoolean Boolean
highlight default link tkConstant Constant
highlight default link tkFunctionWord Keyword
highlight default link tkDefinition Function
highlight default link tkCompileTime Constant
highlight default link tkStructName Type
highlight default link tkType Type
highlight default link tkFloat Float
highlight default link tkModule Include
highlight default link tkCall Function
highlight default link tkClause Keyword
highlight default link tkTestWord Keyword
highlight default link tkAttribute PreProc
highlight default link tkNumber Number
highlight default link tkEscape SpecialChar
highlight default link tkString String
highlight default link tkTodo Todo
highlight default link tkComment Comment
highlight default link tkDoc SpecialComment

let b:current_syntax = 'tk'
