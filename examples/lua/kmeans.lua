-- Finds groups of points: each center moves to the mean of the points that are closest to it, until
-- nothing changes (k-means; Lloyd, 1957). The first centers are far from each other (k-means++,
-- Arthur and Vassilvitskii, 2007).
--
--     eddy examples/lua/kmeans.lua [points of a group or "small"]
local ed = require "eddy"
ed.set_seed(5)
local each = arg[1] == "small" and 200 or tonumber(arg[1] or 20000)
local GROUPS = 6

-- Points around GROUPS places on a circle: [each * GROUPS, 2].
local angle = ed.range(GROUPS) * (2 * math.pi / GROUPS)
local places = ed.stack({angle:cos(), angle:sin()}, {axis = 2})
local points = (places:expand_dims{axis = 2} + ed.random.normal({GROUPS, each, 2}, {stddev = 0.15}))
    :reshape{-1, 2}

-- Squared distances of all points from all centers: [points, centers].
local function distances(centers)
    return ((points:expand_dims{axis = 2} - centers) ^ 2):sum{axis = 3}
end

-- One center after the other is drawn, a point far from the others with more probability.
local function first_centers()
    local centers = ed.random.choice(points, {1})
    for _ = 2, GROUPS do
        local nearest = distances(centers):min{axis = 2}
        centers = ed.concat({centers, ed.random.choice(points, {1}, {weights = nearest})}, {axis = 1})
    end
    return centers
end

-- Centers when nothing changes any more, the group of each point, the mean squared distance, rounds.
local function kmeans()
    local centers, groups, rounds = first_centers(), nil, 0
    repeat
        local d, before = distances(centers), groups
        groups, rounds = d:argmin{axis = 2}, rounds + 1
        centers = ed.unsorted_segment_mean(points, groups, {num_segments = GROUPS})
    until before and groups:equal(before):all():item()
    return centers, groups, distances(centers):min{axis = 2}:mean():item(), rounds
end

-- The first centers are drawn: the best of a few trials counts.
local centers, groups, least
for trial = 1, 5 do
    local c, g, distance, rounds = kmeans()
    print(("trial %d: %d rounds, mean squared distance %.4f"):format(trial, rounds, distance))
    if not least or distance < least then centers, groups, least = c, g, distance end
end

print("\n  points      center")
local sizes = groups:bincount()
for i, center in pairs(centers) do
    print(("%8d  %6.3f %6.3f"):format(sizes[i]:item(), table.unpack(center:totable())))
end
local wrong = ((places:expand_dims{axis = 2} - centers) ^ 2):sum{axis = 3}:min{axis = 2}:max():item() ^ 0.5
print(("farthest from a place that the points were drawn around: %.4f"):format(wrong))
assert(wrong < 0.05)
