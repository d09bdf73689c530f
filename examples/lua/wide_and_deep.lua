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

-- The columns of a CSV file without quotes, by their names: tables of strings.
local function read_table(path)
    local columns, names = {}, {}
    for line in io.lines(path) do
        local i = 0
        for value in line:gmatch("[^,]+") do
            i = i + 1
            if not names[i] then names[i], columns[value] = value, {}
            else table.insert(columns[names[i]], value) end
        end
    end
    return columns
end
