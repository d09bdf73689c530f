local check = require "check"
local v, step = ed.variable(1.0), ed.counter()
local checkpoint = ed.checkpoint{v = v, step = step}

do
    local manager <close> = ed.checkpoint_manager(checkpoint, folder .. "/kept", {max_to_keep = 2, checkpoint_name = "it"})
    local initialized = 0
    check.equal(manager:restore_or_initialize(function() initialized = initialized + 1 end), nil)
    check.equal(initialized, 1)
    check.equal(manager:restoration(), nil)
    check.equal(manager.latest, nil)
    check.equal(manager.best, nil)
    check.equal(#manager, 0)
    for i = 1, 3 do
        v:assign(i)
        check.equal(manager:save(), folder .. "/kept/it-" .. i)
    end
    check.equal(manager:save{number = 9}, folder .. "/kept/it-9")
    check.list(manager.checkpoints, {folder .. "/kept/it-3", folder .. "/kept/it-9"})
    check.equal(manager.latest, folder .. "/kept/it-9")
    check.equal(#manager, 2)
    check.raises("the lock is held by this or another process", ed.checkpoint_manager, checkpoint, folder .. "/kept")
    check.raises("no option metrics", manager.save, manager, {metrics = 1})
    check.raises("no field or method 'last'", function() return manager.last end)
end

do -- the folder is free again; the newest that is whole is restored
    local manager <close> = ed.checkpoint_manager(checkpoint, folder .. "/kept", {checkpoint_name = "it"})
    local f = assert(io.open(folder .. "/kept/it-9.index", "wb"))
    f:write("damaged")
    f:close()
    v:assign(0)
    check.equal(manager:restore_or_initialize(error), folder .. "/kept/it-3")
    check.equal(v:item(), 3.0)
    assert(manager:skipped():find("it-9", 1, true))
    check.equal(#manager:restoration():restored(), 3)
    v:assign(5)
    assert(manager:save{in_background = true})
    v:assign(6)
    manager:wait()
    v:assign(0)
    checkpoint:restore(manager.latest)
    check.equal(v:item(), 5.0)
end

do -- intervals, by a counter
    local manager <close> = ed.checkpoint_manager(checkpoint, folder .. "/steps", {step_counter = step, checkpoint_interval = 5})
    step:assign(1)
    assert(manager:save())
    step:assign(3)
    check.equal(manager:save{}, nil)
    assert(manager:save{any_step = true})
    check.equal(#manager, 2)
end

do -- the best
    local manager <close> = ed.checkpoint_manager(checkpoint, folder .. "/best", {max_to_keep = 1, best = "highest"})
    for _, accuracy in ipairs{0.5, 0.9, 0.7} do manager:save{metric = accuracy} end
    local best = manager.best
    check.equal(#manager, 2)
    check.equal(best, manager.checkpoints[1])
    check.raises('best must be "highest" or "lowest"', ed.checkpoint_manager, checkpoint, folder .. "/x", {best = "most"})
end

check.raises("folder is missing", ed.checkpoint_manager, checkpoint)
check.raises("checkpoint is a tensor; a checkpoint is expected", ed.checkpoint_manager, v, folder)
check.raises("checkpoint_interval requires", ed.checkpoint_manager, checkpoint, folder .. "/y", {checkpoint_interval = 5})
check.equal(ed.latest_checkpoint(folder .. "/nowhere"), nil)
