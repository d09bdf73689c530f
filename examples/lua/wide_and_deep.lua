-- Who earns more? A table of people, made here and read from a CSV file: columns of numbers and of
-- words. A wide part remembers pairs of words, a deep part generalizes (Cheng et al., 2016).
--
--     eddy examples/lua/wide_and_deep.lua [rows or "small"] [file.csv]
local ed = require "eddy"
ed.set_seed(1)
local rows, file = arg[1] == "small" and 4000 or tonumber(arg[1] or 40000), arg[2] or "people.csv"

local JOBS = {"baker", "clerk", "driver", "engineer", "farmer", "nurse", "painter", "teacher"}
local TOWNS = {"Aar", "Bern", "Como", "Davos", "Elm", "Flims"}

-- The rule is hidden in the table: age and hours count by a curve, and so does each pair of job and town.
local function write_table(path)
    local draws = ed.random.uniform{rows, 4}:totable()
    local bonus = ed.random.normal{#JOBS, #TOWNS}:totable()
    local f = assert(io.open(path, "w"))
    f:write("age,hours,job,town,earns_more\n")
    for _, d in ipairs(draws) do
        local age, hours = 18 + math.floor(d[1] * 50), 10 + math.floor(d[2] * 50)
        local job, town = math.ceil(d[3] * #JOBS + 1e-9), math.ceil(d[4] * #TOWNS + 1e-9)
        local score = bonus[job][town] + 1.5 * math.sin((age - 18) / 15) + (hours - 35) / 15
        f:write(("%d,%d,%s,%s,%d\n"):format(age, hours, JOBS[job], TOWNS[town], score > 0.5 and 1 or 0))
    end
    f:close()
end

write_table(file)
local numbers = ed.read_csv(file, {columns = {"age", "hours"}})
local more = ed.read_csv(file, {columns = "earns_more"})
local job_words, town_words = ed.read_csv_words(file, {columns = {"job", "town"}})
-- Words as integers from 0, and how many different ones there are.
local function integers(words)
    local known = ed.vocabulary(words)
    return ed.string_lookup(words, known, {num_oov_indices = 0}), #known
end
local jobs, job_count = integers(job_words)
local towns, town_count = integers(town_words)
print(("%s: %d people, %.0f %% earn more"):format(file, numbers.shape[1], 100 * more:mean():item()))

local normalize = ed.layers.normalization():adapt(numbers)
local measures = ed.input({2}, {name = "measures"})
local job = ed.input({}, {dtype = "int64", name = "job"})
local town = ed.input({}, {dtype = "int64", name = "town"})
local wide = ed.dense(1)((job * town_count + town):one_hot(job_count * town_count))
local deep = ed.concat({
    normalize(measures), ed.embedding(job_count, 4)(job), ed.embedding(town_count, 4)(town),
}, {axis = 2})
for _, units in ipairs{32, 16} do deep = ed.dense(units, {activation = "relu"})(deep) end
local answer = ed.layers.activation("sigmoid")(wide + ed.dense(1)(deep))
local model = ed.model({measures, job, town}, answer, {name = "wide_and_deep"})

-- The last fifth of the table is for the test.
local learned = rows * 4 // 5
local function part(first, last)
    local function cut(x) return x[{{first, last}}] end
    return {cut(numbers), cut(jobs), cut(towns)}, cut(more)
end
local x, y = part(1, learned)
local test_x, test_y = part(learned + 1, rows)
model:compile{optimizer = ed.adam(5e-3), loss = "binary_crossentropy", metrics = {"accuracy", "auc"}}
model:fit(x, y, {epochs = 10, batch_size = 64, validation_split = 0.1, verbose = 2})

local reached = model:evaluate(test_x, test_y)
print(("accuracy on %d other people: %.2f %%, area under the curve %.3f"):format(
    rows - learned, 100 * reached.accuracy, reached.auc))
local chances = model:predict{test_x[1]["1:5"], test_x[2]["1:5"], test_x[3]["1:5"]}
for i = 1, 5 do
    local age, hours = table.unpack(test_x[1][i]:totable())
    print(("%s, %s, %g hours, %g: %3.0f %%; %s"):format(job_words[learned + i], town_words[learned + i],
        hours, age, 100 * chances[i]:item(), test_y[i]:item() == 1 and "yes" or "no"))
end
assert(reached.accuracy > (rows < 10000 and 0.88 or 0.95))
