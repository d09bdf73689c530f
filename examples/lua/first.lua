-- Linear regression: what plane do these points lie on?
--
--     eddy examples/lua/first.lua
local ed = require "eddy"
ed.set_seed(1)

local x = ed.random.normal{256, 3}
local y = x:matmul{{1}, {-2}, {3}} + 4 -- what the model has to find out
local model, adam = ed.dense(1), ed.adam{learning_rate = 0.1}
for step = 1, 300 do
    local tape = ed.tape()
    local loss = ((model(x) - y) ^ 2):mean()
    adam:minimize(tape, loss, model)
    if step % 100 == 0 then print(("step %d: loss %.2g"):format(step, loss:item())) end
end
for _, v in ipairs(model:variables()) do print(v) end -- 1, -2, 3 and 4
