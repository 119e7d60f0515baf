-- Owns the configuration of `tk lsp` for Neovim 0.11 and newer: `vim.lsp.enable("tk")`.
return { cmd = { "tk", "lsp" }, filetypes = { "tk" }, root_markers = { ".git" } }
