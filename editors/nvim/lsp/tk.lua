-- The configuration of `tk lsp` for Neovim 0.11 and newer: `vim.lsp.enable("tk")`.
return {
  cmd = { "tk", "lsp" },
  filetypes = { "tk" },
  root_markers = { ".git" },
  commands = {
    ["tk.runTests"] = function(command, context)
      local client = vim.lsp.get_client_by_id(context.client_id)
      require("tk").run_tests(client.config.cmd[1], command.arguments[1])
    end,
  },
}
