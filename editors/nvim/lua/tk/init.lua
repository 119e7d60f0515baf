-- Owns the way from a buffer of the language to its server, and the command behind the lens of a kernel.
--
-- Works with Neovim 0.7 and newer. Guarantees one server for each root folder, shared by its buffers.

local M = {}

local defaults = {
  -- The server: a list of words.
  cmd = { "tk", "lsp" },
  -- The root folder is the nearest one above the file that holds one of these, else the folder of the file.
  root_markers = { ".git" },
  -- Called with the client and the buffer when a server is attached, for mappings.
  on_attach = nil,
  -- What the editor can do besides what Neovim says of itself; completion plugins have words for this.
  capabilities = nil,
}

local function root(file, markers)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  local at = folder
  while true do
    for _, marker in ipairs(markers) do
      local found = at .. "/" .. marker
      if vim.fn.isdirectory(found) == 1 or vim.fn.filereadable(found) == 1 then
        return at
      end
    end
    local above = vim.fn.fnamemodify(at, ":h")
    if above == at then
      return folder
    end
    at = above
  end
end

-- The servers of this session by root folder, for versions without `vim.lsp.start`.
local running = {}

local function attach(options, buffer)
  local config = {
    name = "tk",
    cmd = options.cmd,
    root_dir = root(vim.api.nvim_buf_get_name(buffer), options.root_markers),
    capabilities = options.capabilities or vim.lsp.protocol.make_client_capabilities(),
    on_attach = options.on_attach,
  }
  if vim.lsp.start then
    return vim.lsp.start(config, { bufnr = buffer })
  end
  config.workspace_folders = { { uri = vim.uri_from_fname(config.root_dir), name = config.root_dir } }
  local client = running[config.root_dir]
  if client == nil or vim.lsp.get_client_by_id(client) == nil then
    client = vim.lsp.start_client(config)
    running[config.root_dir] = client
  end
  if client ~= nil then
    vim.lsp.buf_attach_client(buffer, client)
  end
  return client
end

-- `tk test FILE --filter NAME` in a terminal below.
local function run_tests(cmd, tests)
  local words = { cmd, "test", vim.uri_to_fname(tests.uri) }
  if tests.filter and tests.filter ~= "" then
    vim.list_extend(words, { "--filter", tests.filter })
  end
  -- The command reads files from disk.
  vim.cmd("silent wall | botright new")
  vim.fn.termopen(words)
end

--- Starts the server for every buffer of the language, those that are open already among them.
function M.setup(given)
  local options = vim.tbl_extend("force", defaults, given or {})
  if vim.lsp.commands then
    vim.lsp.commands["tk.runTests"] = function(command)
      run_tests(options.cmd[1], command.arguments[1])
    end
  end
  local group = vim.api.nvim_create_augroup("tk", { clear = true })
  vim.api.nvim_create_autocmd("FileType", {
    group = group,
    pattern = "tk",
    callback = function(event)
      attach(options, event.buf)
    end,
  })
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].filetype == "tk" then
      attach(options, buffer)
    end
  end
  vim.api.nvim_create_user_command("TkRestart", function()
    for _, client in ipairs((vim.lsp.get_clients or vim.lsp.get_active_clients)()) do
      if client.name == "tk" then
        vim.lsp.stop_client(client.id)
      end
    end
    running = {}
    -- A server has a moment to end before the next one starts.
    vim.defer_fn(function()
      for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
        if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].filetype == "tk" then
          attach(options, buffer)
        end
      end
    end, 500)
  end, { desc = "Restart the language server of tk", force = true })
end

return M
