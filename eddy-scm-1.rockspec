-- The module for Lua: `luarocks --lua-version 5.4 make` in a checkout builds and installs it.
rockspec_format = "3.0"
package = "eddy"
version = "scm-1"
source = {
   url = "git+file://." -- a checkout; the Makefile lies beside this file
}
description = {
   summary = "Eager tensors with tape autodiff",
   detailed = [[
TensorFlow 2's way of working (eager ops, gradient tapes, variables, optimizers, layers, checkpoints) as a small library in C,
with all of it in Lua.]]
}
supported_platforms = { "linux" }
dependencies = {
   "lua >= 5.4, < 5.5"
}
-- The Makefile looks for the libraries, wherever the compiler finds them, and names those missing.
build = {
   type = "make",
   build_target = "module",
   build_variables = { CC = "$(CC)", LUA_CFLAGS = "-I$(LUA_INCDIR)" },
   install_target = "install-module",
   install_variables = { CC = "$(CC)", LUA_CFLAGS = "-I$(LUA_INCDIR)", MODULE_DIR = "$(LIBDIR)" }
}
