" Files of the language, whatever else claims the ending.
autocmd BufNewFile,BufRead *.tk setfiletype tk
