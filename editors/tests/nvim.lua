-- Tests the language in Neovim 0.7 and newer, through Neovim's own client: run by `run` as
--     TK=.. nvim --headless --clean --cmd 'set rtp^=editors/nvim' -S editors/tests/nvim.lua
-- Prints a line for each test and `nvim: N passed, M failed`; the exit code is 1 if one failed.

local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local root = vim.fn.fnamemodify(here, ":h:h")
local tk = os.getenv("TK") or (root .. "/target/debug/tk")
local WAIT = 30000

local folder = vim.fn.tempname()
vim.fn.mkdir(folder .. "/.git", "p")
for _, name in ipairs({ "main.tk", "helpers.tk" }) do
  vim.fn.writefile(vim.fn.readfile(here .. "/workspace/" .. name), folder .. "/" .. name)
end

local passed, failed = 0, 0
local function test(name, run)
  local ok, message = pcall(run)
  if ok then
    passed = passed + 1
  else
    failed = failed + 1
  end
  io.stdout:write((ok and "ok " or "not ok ") .. name .. (ok and "" or ("\n  " .. tostring(message))) .. "\n")
end

local function equal(found, expected)
  if not vim.deep_equal(found, expected) then
    error(("found %s, expected %s"):format(vim.inspect(found), vim.inspect(expected)), 2)
  end
end

local function wait(what, check)
  if not vim.wait(WAIT, check, 20) then
    error("no " .. what .. " in " .. WAIT .. " ms", 2)
  end
end

local function open(name)
  vim.cmd("silent edit! " .. vim.fn.fnameescape(name))
  return vim.api.nvim_get_current_buf()
end

-- Puts the cursor on the first place of a text.
local function go(pattern)
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  if vim.fn.search("\\V" .. pattern, "cW") == 0 then
    error("there is no " .. pattern, 2)
  end
end

local function clients()
  return (vim.lsp.get_clients or vim.lsp.get_active_clients)()
end

local function text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer or 0, 0, -1, false), "\n")
end

local function replace(from, to)
  local buffer = vim.api.nvim_get_current_buf()
  local lines = vim.split((text(buffer):gsub(vim.pesc(from), (to:gsub("%%", "%%%%")))), "\n")
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
end

local function messages()
  local all = vim.tbl_map(function(d)
    return d.message
  end, vim.diagnostic.get(0))
  return table.concat(all, "\n")
end

local attached = 0
require("tk").setup({
  cmd = { tk, "lsp" },
  on_attach = function()
    attached = attached + 1
  end,
})
local main = open(folder .. "/main.tk")

test("a .tk file has its type, options and colours", function()
  equal(vim.bo.filetype, "tk")
  equal(vim.bo.commentstring, "// %s")
  equal(vim.bo.shiftwidth, 4)
  local function group(pattern)
    go(pattern)
    local at = vim.api.nvim_win_get_cursor(0)
    return vim.fn.synIDattr(vim.fn.synID(at[1], at[2] + 1, 1), "name")
  end
  equal(group("use"), "tkInclude")
  equal(group("/// y"), "tkDoc")
  equal(group("@fast"), "tkAttribute")
  equal(group("kernel"), "tkFunctionWord")
  equal(group("double["), "tkDefinition")
  equal(group("BLOCK"), "tkCompileTime")
  equal(group("i32"), "tkType")
  equal(group("128"), "tkNumber")
  equal(group("grid(cdiv"), "tkClause")
  equal(group("shape[0]"), "tkMember")
  equal(group("every element"), "tkString")
  equal(group("1e-6"), "tkFloat")
end)

test("the server is attached, once for two files of one folder", function()
  wait("server", function()
    return attached == 1
  end)
  open(folder .. "/helpers.tk")
  wait("server", function()
    return attached == 2
  end)
  equal(#clients(), 1)
  equal(clients()[1].name, "tk")
  equal(vim.loop.fs_realpath(clients()[1].config.root_dir), vim.loop.fs_realpath(folder))
  vim.api.nvim_set_current_buf(main)
end)

test("diagnostics follow the text", function()
  replace("program_id(0) * BLOCK", "program_id(0) * BLOK")
  wait("diagnostic", function()
    return messages():find("cannot find `BLOK`", 1, true)
  end)
  local found = vim.diagnostic.get(main)
  equal(#found, 1)
  equal({ found[1].lnum, found[1].source, found[1].severity }, { 9, "tk", vim.diagnostic.severity.ERROR })
  replace("BLOK", "BLOCK")
  wait("text without diagnostics", function()
    return #vim.diagnostic.get(main) == 0
  end)
end)

test("hover shows a type with its shape, and documentation", function()
  local function hover(pattern, expected)
    go(pattern)
    vim.lsp.buf.hover()
    local shown
    wait("window", function()
      for _, window in ipairs(vim.api.nvim_list_wins()) do
        if vim.api.nvim_win_get_config(window).relative ~= "" then
          shown = { window, text(vim.api.nvim_win_get_buf(window)) }
        end
      end
      return shown ~= nil
    end)
    vim.api.nvim_win_close(shown[1], true)
    for _, part in ipairs(expected) do
      assert(shown[2]:find(part, 1, true), ("no %s in %s"):format(part, shown[2]))
    end
  end
  hover("values = x", { "values: tile[T, BLOCK]" })
  hover("twice(values)", { "fn twice", "Twice its argument." })
end)

test("definition goes to other files and into the library", function()
  local function definition(pattern, name, line)
    vim.api.nvim_set_current_buf(main)
    go(pattern)
    vim.lsp.buf.definition()
    wait("definition of " .. pattern, function()
      local at = vim.api.nvim_get_current_line()
      return vim.fn.expand("%:t") == name and at:find(line, 1, true)
    end)
  end
  definition("values))", "main.tk", "let values")
  definition("twice(values)", "helpers.tk", "fn twice")
  definition("grouped(pid", "grid.tk", "fn grouped")
  wait("server of the library", function()
    return vim.tbl_count(vim.lsp.buf_get_clients(0)) == 1
  end)
  vim.api.nvim_set_current_buf(main)
end)

test("references fill the quickfix list, across files", function()
  go("twice(values)")
  vim.fn.setqflist({})
  vim.lsp.buf.references()
  wait("list", function()
    return #vim.fn.getqflist() > 0
  end)
  local found = vim.tbl_map(function(item)
    return vim.fn.fnamemodify(vim.fn.bufname(item.bufnr), ":t") .. ":" .. item.lnum
  end, vim.fn.getqflist())
  table.sort(found)
  vim.cmd("cclose")
  vim.api.nvim_set_current_buf(main)
  equal(found, { "helpers.tk:4", "main.tk:1", "main.tk:12", "main.tk:28" })
end)

test("rename changes every file", function()
  local helpers = vim.fn.bufnr(folder .. "/helpers.tk")
  local before = { text(main), text(helpers) }
  go("twice(values)")
  vim.lsp.buf.rename("doubled")
  wait("change", function()
    return text(main) ~= before[1] and text(helpers) ~= before[2]
  end)
  equal(text(main), (before[1]:gsub("twice", "doubled")))
  equal(text(helpers), (before[2]:gsub("twice", "doubled")))
  wait("text without diagnostics", function()
    return #vim.diagnostic.get(main) == 0
  end)
end)

test("a rename that would break the program changes nothing", function()
  local before = text(main)
  local shown
  local notify = vim.notify
  vim.notify = function(message)
    shown = message
  end
  go("values = x")
  vim.lsp.buf.rename("start")
  wait("refusal", function()
    return shown ~= nil
  end)
  vim.notify = notify
  assert(shown:find("start", 1, true), shown)
  equal(text(main), before)
end)

test("formatting lays a file out", function()
  local expected = text(main)
  replace("let start = program_id(0) * BLOCK;", "let   start=program_id( 0 )*BLOCK ;")
  assert(text(main) ~= expected, "nothing to format")
  if vim.lsp.buf.format then
    vim.lsp.buf.format({ timeout_ms = WAIT })
  else
    vim.lsp.buf.formatting_sync(nil, WAIT)
  end
  equal(text(main), expected)
end)

test("indentation agrees with the formatter", function()
  local lines, other = 0, {}
  for _, path in ipairs(vim.fn.glob(root .. "/examples/*.tk", 0, 1)) do
    local copy = folder .. "/" .. vim.fn.fnamemodify(path, ":t")
    vim.fn.writefile(vim.fn.readfile(path), copy)
    vim.fn.system({ tk, "fmt", copy })
    local buffer = open(copy)
    local expected = text(buffer)
    vim.cmd([[silent %substitute/^ *//e]])
    assert(text(buffer) ~= expected, "nothing to indent")
    vim.cmd("silent normal! gg=G")
    local found = vim.split(text(buffer), "\n")
    for line, wanted in ipairs(vim.split(expected, "\n")) do
      lines = lines + 1
      if found[line] ~= wanted then
        table.insert(other, vim.fn.fnamemodify(path, ":t") .. ":" .. line .. wanted)
      end
    end
    vim.cmd("silent bwipeout!")
    vim.fn.delete(copy)
  end
  assert(lines > 800 and #other == 0, table.concat(other, "\n"))
end)

test("the lens of a kernel runs its tests in a terminal", function()
  vim.api.nvim_set_current_buf(main)
  go("double[")
  vim.lsp.codelens.refresh()
  wait("lens", function()
    return #vim.lsp.codelens.get(main) > 0
  end)
  local lens = vim.tbl_filter(function(l)
    return l.range.start.line == vim.fn.line(".") - 1
  end, vim.lsp.codelens.get(main))[1]
  vim.lsp.commands[lens.command.command](lens.command, { bufnr = main, client_id = clients()[1].id })
  wait("result", function()
    return text():find("1 passed, 0 failed", 1, true)
  end)
  vim.cmd("bwipeout!")
end)

test("a restart gives the files another server", function()
  vim.api.nvim_set_current_buf(main)
  local before = clients()[1].id
  vim.cmd("TkRestart")
  wait("server", function()
    -- The file of the standard library that was visited may have brought a server for its own folder.
    local fresh = vim.tbl_filter(function(client)
      return client.id > before and client.initialized and vim.lsp.buf_is_attached(main, client.id)
    end, clients())
    return #fresh == 1 and vim.lsp.get_client_by_id(before) == nil
  end)
  replace("let start", "let strat")
  wait("diagnostic", function()
    return messages():find("`start`", 1, true)
  end)
end)

test("the setup of the page works as written", function()
  local page = table.concat(vim.fn.readfile(root .. "/editors/nvim/README.md"), "\n")
  local setup = page:match("```lua\n(.-)```")
  setup = setup:gsub("/path/to/editors/nvim", root .. "/editors/nvim")
  setup = setup:gsub('{ "tk", "lsp" }', ("{ %q, 'lsp' }"):format(tk))
  vim.cmd("TkRestart")
  assert(loadstring(setup))()
  local buffer = open(folder .. "/helpers.tk")
  wait("mapping", function()
    return vim.tbl_count(vim.tbl_filter(function(map)
      return map.lhs == "gd"
    end, vim.api.nvim_buf_get_keymap(buffer, "n"))) == 1
  end)
  equal(vim.bo[buffer].omnifunc, "v:lua.vim.lsp.omnifunc")
end)

test("the setup gives files their type where types are detected before it", function()
  local init = folder .. "/init.lua"
  vim.fn.writefile({
    'vim.cmd("filetype plugin indent on")',
    ("vim.opt.runtimepath:append(%q)"):format(root .. "/editors/nvim"),
    ('require("tk").setup({ cmd = { %q, "lsp" } })'):format(tk),
  }, init)
  local show = "lua io.stdout:write(vim.bo.filetype .. ' ' .. vim.bo.commentstring)"
  local words = { vim.v.progpath, "-n", "--headless", "-u", init, folder .. "/main.tk", "-c", show, "-c", "qall!" }
  equal(vim.fn.system(words), "tk // %s")
end)

test("nvim-dap gets the adapter and configurations", function()
  equal(require("tk.dap").setup(), false)
  -- In the place of the plugin, which keeps what it is given.
  local dap = { adapters = {}, configurations = { tk = { { name = "Tests of this file", mine = true } } } }
  package.loaded["dap"] = dap
  equal(require("tk.dap").setup({ cmd = { tk, "dap" } }), true)
  equal(dap.adapters.tk, { type = "executable", command = tk, args = { "dap" } })
  equal(require("tk.dap").setup({ cmd = { tk, "dap" } }), true)
  equal(#dap.configurations.tk, 3)
  equal(dap.configurations.tk[1].mine, true)
  package.loaded["dap"] = nil
end)

-- A session as nvim-dap drives it: the same requests in the same order, with the adapter and a configuration that it got.
local function session(configuration, breakpoints, filters)
  local adapter = require("tk.dap").adapter({ tk, "dap" })
  local s = { seq = 0, stopped = {}, said = "", answers = {} }
  local buffer = ""
  local function read(_, data)
    buffer = buffer .. table.concat(data, "\n")
    while true do
      local head, length = buffer:match("^(Content%-Length: (%d+)\r\n\r\n)")
      if head == nil or #buffer < #head + tonumber(length) then
        return
      end
      local message = vim.fn.json_decode(buffer:sub(#head + 1, #head + tonumber(length)))
      buffer = buffer:sub(#head + tonumber(length) + 1)
      if message.type == "response" then
        s.answers[message.request_seq] = message
      elseif message.event == "stopped" then
        table.insert(s.stopped, message.body)
      elseif message.event == "output" then
        s.said = s.said .. message.body.output
      else
        s[message.event] = message.body or true
      end
    end
  end
  -- A job that has ended can no longer be waited for, so its end is noted.
  local function ended(_, code)
    s.code = code
  end
  local job = vim.fn.jobstart(vim.list_extend({ adapter.command }, adapter.args), { on_stdout = read, on_exit = ended })
  function s.send(command, arguments)
    s.seq = s.seq + 1
    local request = { seq = s.seq, type = "request", command = command, arguments = arguments or vim.empty_dict() }
    local body = vim.fn.json_encode(request)
    vim.fn.chansend(job, ("Content-Length: %d\r\n\r\n%s"):format(#body, body))
    return s.seq
  end
  function s.ask(command, arguments)
    local seq = s.send(command, arguments)
    wait("answer to " .. command, function()
      return s.answers[seq] ~= nil
    end)
    local answer = s.answers[seq]
    assert(answer.success, command .. ": " .. tostring(answer.message))
    return answer.body
  end
  -- Waits until it stops: why, and the functions with their lines.
  function s.stop()
    wait("stop", function()
      return #s.stopped > 0
    end)
    local why = table.remove(s.stopped, 1)
    local threads = s.ask("threads").threads
    s.frames = s.ask("stackTrace", { threadId = why.threadId, startFrame = 0 }).stackFrames
    equal(threads[1].id, why.threadId)
    return { why.text or why.reason, s.frames[1].name, s.frames[1].line, #s.frames }
  end
  function s.go(command)
    s.ask(command, { threadId = 1 })
    return s.stop()
  end
  -- The variables of the frame on top.
  function s.variables()
    local found = {}
    for _, scope in ipairs(s.ask("scopes", { frameId = s.frames[1].id }).scopes) do
      for _, v in ipairs(s.ask("variables", { variablesReference = scope.variablesReference }).variables) do
        found[v.name] = v.value
      end
    end
    return found
  end
  function s.finish()
    s.ask("disconnect", { restart = false, terminateDebuggee = true })
    wait("end", function()
      return s.code ~= nil
    end)
    equal(s.code, 0)
  end
  s.ask("initialize", {
    clientId = "neovim", clientname = "neovim", adapterID = "nvim-dap", pathFormat = "path", columnsStartAt1 = true,
    linesStartAt1 = true, supportsRunInTerminalRequest = true, supportsVariableType = true,
    supportsProgressReporting = true, locale = "en",
  })
  local launched = s.send("launch", configuration)
  wait("initialized", function()
    return s.initialized
  end)
  local places = vim.tbl_map(function(line)
    return { line = line }
  end, breakpoints)
  local source = { path = configuration.program, name = vim.fn.fnamemodify(configuration.program, ":t") }
  local set = s.ask("setBreakpoints", { source = source, breakpoints = places, sourceModified = false, lines = breakpoints })
  for _, b in ipairs(set.breakpoints) do
    assert(b.verified, b.message)
  end
  s.ask("setExceptionBreakpoints", { filters = filters })
  s.ask("configurationDone")
  wait("launch", function()
    return s.answers[launched] ~= nil
  end)
  assert(s.answers[launched].success, tostring(s.answers[launched].message) .. s.said)
  return s
end

-- What a configuration of the plugin is for the cursor: nvim-dap calls its functions and replaces `${file}`.
local function chosen(number, path)
  local launch = {}
  for name, value in pairs(require("tk.dap").configurations()[number]) do
    launch[name] = type(value) == "function" and value() or value
  end
  launch.program = launch.program:gsub("${file}", path)
  return launch
end

test("a debug session: breakpoints, steps, variables, the end", function()
  local path = folder .. "/steps.tk"
  vim.fn.writefile({
    "fn twice(x: tile[f32, 4]) -> tile[f32, 4] {",
    "    let y = x + x;",
    "    y",
    "}",
    "",
    "kernel scale(x: mut view[f32, 1]) grid(2) {",
    "    let at = program_id(0) * 4;",
    "    let a = twice(x.load([at], [4]));",
    "    x.store([at], a);",
    "}",
    "",
    [[test "twice" {]],
    "    let x = buffer(arange(0, 8) as f32);",
    "    scale(x);",
    "    assert(all(x.tile() == arange(0, 8) as f32 * 2.0));",
    "}",
  }, path)
  open(path)
  go("scale(x);")
  local launch = chosen(2, path)
  equal(launch.test, "twice")
  local s = session(launch, { 7 }, { "fault" })
  equal(s.stop(), { "breakpoint", "scale", 7, 2 })
  equal(s.go("next"), { "step", "scale", 8, 2 })
  equal(s.variables().at, "0")
  equal(s.go("stepIn"), { "step", "twice", 2, 3 })
  equal(s.go("next"), { "step", "twice", 3, 3 })
  equal(s.variables(), { x = "[0.0, 1.0, 2.0, 3.0]", y = "[0.0, 2.0, 4.0, 6.0]" })
  equal(s.go("stepOut"), { "step", "scale", 9, 2 })
  equal(s.variables().a, "[0.0, 2.0, 4.0, 6.0]")
  -- The other program of the grid.
  equal(s.go("continue"), { "breakpoint", "scale", 7, 2 })
  equal(s.go("next"), { "step", "scale", 8, 2 })
  equal(s.variables().at, "4")
  s.ask("continue", { threadId = 1 })
  wait("end", function()
    return s.terminated
  end)
  equal(s.exited.exitCode, 0)
  s.finish()
end)

test("a debug session that stops at a NaN", function()
  local path = folder .. "/nan.tk"
  vim.fn.writefile({
    "@fast kernel scale(x: mut view[f32, 1], by: f32) grid(1) {",
    "    x.store([0], x.load([0], [4]) * by);",
    "}",
    "",
    [[test "a \"NaN\"" {]],
    "    scale(buffer(zeros([4], f32)), inf);",
    "}",
  }, path)
  open(path)
  go("scale(buffer")
  equal(require("tk.dap").kernel_at_cursor(), "scale")
  local launch = chosen(2, path)
  equal(launch.test, 'a "NaN"')
  local s = session(launch, {}, { "nan", "fault" })
  equal(s.stop(), { "a value becomes NaN here", "scale", 2, 2 })
  equal(s.variables().by, "inf")
  equal(s.ask("evaluate", { expression = "by * 2", frameId = s.frames[1].id, context = "repl" }).result, "inf")
  s.finish()
end)

io.stdout:write(("nvim: %d passed, %d failed\n"):format(passed, failed))
vim.fn.delete(folder, "rf")
vim.cmd(failed == 0 and "qall!" or "cquit 1")
