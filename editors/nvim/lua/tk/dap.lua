-- The debugger: registers `tk dap` and launch configurations with nvim-dap, if that plugin is installed.
--
-- Everything else about debugging, such as keys and windows, is that plugin's.

local M = {}

local defaults = {
  -- The adapter: a list of words.
  cmd = { "tk", "dap" },
}

local escapes = { n = "\n", t = "\t", r = "\r", ["0"] = "\0" }

-- The title of a test as the command knows it.
local function unescaped(title)
  title = title:gsub("\\u{(%x+)}", function(code)
    return vim.fn.nr2char(tonumber(code, 16))
  end)
  return (title:gsub("\\(.)", function(letter)
    return escapes[letter] or letter
  end))
end

--- The title of the test that the cursor is in, or of the last one above it.
function M.test_at_cursor()
  for number = vim.fn.line("."), 1, -1 do
    local title = vim.fn.getline(number):match('^%s*test%s+"(.*)"%s*{')
    if title then
      return unescaped(title)
    end
  end
end

--- The kernel that the cursor is in, or the last one above it.
function M.kernel_at_cursor()
  for number = vim.fn.line("."), 1, -1 do
    local name = vim.fn.getline(number):match("^[@%w%s]*kernel%s+([%w_]+)")
    if name then
      return name
    end
  end
end

-- `x=randn:f32[16] n=16`, the way `tk run` takes them.
local function arguments()
  local words = vim.split(vim.fn.input("arguments: "), "%s+", { trimempty = true })
  -- An empty table would be sent as an object.
  return #words > 0 and words or nil
end

-- Values that are functions are computed by nvim-dap when a session starts.
function M.configurations()
  local function launch(name, more)
    return vim.tbl_extend("error", { type = "tk", request = "launch", name = name, program = "${file}" }, more)
  end
  return {
    launch("Tests of this file", {}),
    launch("Test at the cursor", { test = M.test_at_cursor }),
    launch("Kernel at the cursor", { kernel = M.kernel_at_cursor, args = arguments, stopOnEntry = true }),
  }
end

--- The adapter, of a list of words.
function M.adapter(cmd)
  local words = vim.deepcopy(cmd)
  return { type = "executable", command = table.remove(words, 1), args = words }
end

--- Registers the debugger; false if nvim-dap is not installed. Configurations that were added before are kept.
function M.setup(given)
  local options = vim.tbl_extend("force", defaults, given or {})
  local found, dap = pcall(require, "dap")
  if not found then
    return false
  end
  dap.adapters.tk = M.adapter(options.cmd)
  dap.configurations.tk = dap.configurations.tk or {}
  local known = {}
  for _, configuration in ipairs(dap.configurations.tk) do
    known[configuration.name] = true
  end
  for _, configuration in ipairs(M.configurations()) do
    if not known[configuration.name] then
      table.insert(dap.configurations.tk, configuration)
    end
  end
  return true
end

return M
