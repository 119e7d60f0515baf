" Owns the options of a buffer with the language: comments, indentation, words.
if exists('b:did_ftplugin') | finish | endif
let b:did_ftplugin = 1

setlocal commentstring=//\ %s
setlocal comments=:///,://
setlocal formatoptions-=t formatoptions+=croql
setlocal expandtab shiftwidth=4 softtabstop=4 textwidth=100
setlocal suffixesadd=.tk

let b:undo_ftplugin = 'setlocal commentstring< comments< formatoptions< expandtab< shiftwidth< softtabstop< textwidth< suffixesadd<'
