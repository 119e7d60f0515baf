-- Starts the server for buffers of the language, and implements the command of the lens of a kernel.
--
-- Works with Neovim 0.7 and newer. Guarantees one server for each root folder, shared by its buffers. With 0.11 and
-- newer `vim.lsp.enable("tk")` does the same by `lsp/tk.lua`; do not use both.

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

-- The root folder of a file, and whether a marker says so.
local function root(file, markers)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  local at = folder
  while true do
    for _, marker in ipairs(markers) do
      if vim.fn.getftype(at .. "/" .. marker) ~= "" then
        return at, true
      end
    end
    local above = vim.fn.fnamemodify(at, ":h")
    if above == at then
      return folder, false
    end
    at = above
  end
end

-- The servers of this session, by root folder. Neovim 0.7 does not list those that are just starting.
local running = {}

local function alive(id)
  return id ~= nil and vim.lsp.get_client_by_id(id) ~= nil
end

local function start(options, folder)
  local config = {
    name = "tk",
    cmd = options.cmd,
    root_dir = folder,
    workspace_folders = { { uri = vim.uri_from_fname(folder), name = folder } },
    capabilities = options.capabilities or vim.lsp.protocol.make_client_capabilities(),
    on_attach = options.on_attach,
  }
  if vim.lsp.start then
    return vim.lsp.start(config, { attach = false })
  end
  return vim.lsp.start_client(config)
end

local function attach(options, buffer)
  local folder, marked = root(vim.api.nvim_buf_get_name(buffer), options.root_markers)
  -- What belongs to no folder, such as the standard library, joins a server that is there.
  local id = running[folder]
  if not alive(id) and not marked then
    id = vim.tbl_filter(alive, vim.tbl_values(running))[1]
  end
  if not alive(id) then
    id = start(options, folder)
    running[folder] = id
  end
  return id and vim.lsp.buf_attach_client(buffer, id)
end

local function attach_all(options)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].filetype == "tk" then
      attach(options, buffer)
    end
  end
end

-- Ends the servers, and starts others when they have ended.
local function restart(options)
  local old = vim.tbl_filter(alive, vim.tbl_values(running))
  running = {}
  -- By force: what is restarted may not be answering.
  vim.lsp.stop_client(old, true)
  local function again(tries)
    local ended = #vim.tbl_filter(alive, old) == 0
    if ended or tries == 0 then
      attach_all(options)
    else
      vim.defer_fn(function()
        again(tries - 1)
      end, 50)
    end
  end
  again(100)
end

--- `tk test FILE --filter NAME [--exact]` in a terminal below, by what a lens gives.
function M.run_tests(cmd, tests)
  local words = { cmd, "test", vim.uri_to_fname(tests.uri) }
  if tests.filter and tests.filter ~= "" then
    vim.list_extend(words, { "--filter", tests.filter })
    if tests.exact then
      table.insert(words, "--exact")
    end
  end
  -- The command reads files from disk.
  vim.cmd("silent wall | botright new")
  vim.fn.termopen(words)
end

-- Makes `*.tk` files of this type, also where types were detected before this folder was on the path: Neovim's own table
-- says that they are Tcl.
local function register(group)
  if vim.filetype and vim.filetype.add then
    vim.filetype.add({ extension = { tk = "tk" } })
  end
  local function set(buffer)
    if vim.bo[buffer].filetype ~= "tk" then
      vim.bo[buffer].filetype = "tk"
    end
  end
  vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
    group = group,
    pattern = "*.tk",
    callback = function(event)
      set(event.buf)
    end,
  })
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_name(buffer):match("%.tk$") then
      set(buffer)
    end
  end
end

--- Starts the server for every buffer of the language, those that are open already among them.
function M.setup(given)
  local options = vim.tbl_extend("force", defaults, given or {})
  if vim.lsp.commands then
    vim.lsp.commands["tk.runTests"] = function(command)
      M.run_tests(options.cmd[1], command.arguments[1])
    end
  end
  local group = vim.api.nvim_create_augroup("tk", { clear = true })
  register(group)
  vim.api.nvim_create_autocmd("FileType", {
    group = group,
    pattern = "tk",
    callback = function(event)
      attach(options, event.buf)
    end,
  })
  vim.api.nvim_create_user_command("TkRestart", function()
    restart(options)
  end, { desc = "Restart the language server of tk", force = true })
  attach_all(options)
end

return M
