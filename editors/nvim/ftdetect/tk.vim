" Files of the language. Neovim takes the ending for Tcl/Tk, so that what it has found is replaced.
autocmd BufNewFile,BufRead *.tk set filetype=tk
