//! How a matrix product is laid out on the device.
//!
//! In: the static baseline and a shape, or a dispatch. Out: the dispatches that the shape needs, or the routes that the dispatch can be of.
//! Refused: a dispatch that no declared shape leads to has no route.
//!
//! One kernel computes all chunks of the sum in `ceil(M/BM) * ceil(N/BN)` workgroups; or one kernel computes a chunk per z in a grid of
//! `ceil(N/BN)` by `ceil(M/BM)`, and a second adds the chunks. The second way is taken when there is more than one chunk and few rows.

use super::documents::{Baseline, Tile};
use super::trace::Extent;

/// Which kernel of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// All chunks.
    Mono,
    /// One chunk per z.
    Partial,
    /// The sum of the chunks.
    Reduce,
}

/// One dispatch that a shape needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Launch {
    /// Kernel.
    pub part: Part,
    /// Threads of a workgroup.
    pub workgroup: Extent,
    /// Workgroups.
    pub blocks: Extent,
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Baseline {
    /// The kernel that has this name.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<Part> {
        let Self { kernels, .. } = self;
        [(&kernels.mono, Part::Mono), (&kernels.partial, Part::Partial), (&kernels.reduce, Part::Reduce)]
            .into_iter()
            .find(|(other, _)| *other == name)
            .map(|(_, part)| part)
    }

    /// Name of a kernel.
    #[must_use]
    pub fn name(&self, part: Part) -> &str {
        match part {
            Part::Mono => &self.kernels.mono,
            Part::Partial => &self.kernels.partial,
            Part::Reduce => &self.kernels.reduce,
        }
    }

    fn threads(&self, tile: &Tile) -> Extent {
        [tile.num_warps.saturating_mul(self.wavefront), 1, 1]
    }

    /// Whether `rows` rows of a tile's product are computed chunk by chunk.
    fn splits(&self, tile: &Tile, rows: u64) -> bool {
        tile.k > self.chunk_k && rows <= self.split_max_rows
    }

    /// The tile of a shape on a route.
    #[must_use]
    pub fn tile(&self, route: &str, m: u64, n: u64, k: u64) -> Option<&Tile> {
        self.tiles.iter().find(|tile| tile.route == route && tile.n == n && tile.k == k && (tile.m.0..=tile.m.1).contains(&m))
    }

    /// The dispatches of one product with `rows` rows.
    #[must_use]
    pub fn launches(&self, tile: &Tile, rows: u64) -> Vec<Launch> {
        let (down, across) = (rows.div_ceil(tile.block_m), tile.n.div_ceil(tile.block_n));
        let workgroup = self.threads(tile);
        if !self.splits(tile, rows) {
            return vec![Launch { part: Part::Mono, workgroup, blocks: [narrow(down.saturating_mul(across)), 1, 1] }];
        }
        let chunks = tile.k.div_ceil(self.chunk_k);
        let sums = rows.saturating_mul(tile.n).div_ceil(self.reduce.block);
        vec![
            Launch { part: Part::Partial, workgroup, blocks: [narrow(across), narrow(down), narrow(chunks)] },
            Launch { part: Part::Reduce, workgroup: [self.reduce.threads, 1, 1], blocks: [narrow(sums), 1, 1] },
        ]
    }

    /// Whether some number of rows that `tile` declares needs the dispatch.
    fn needs(&self, tile: &Tile, launch: &Launch) -> bool {
        let splits = tile.k > self.chunk_k;
        let split_rows = (tile.m.0.max(1), tile.m.1.min(self.split_max_rows));
        let rows = match launch.part {
            Part::Partial | Part::Reduce if splits => split_rows,
            Part::Mono if splits => (tile.m.0.max(self.split_max_rows + 1), tile.m.1),
            Part::Mono => (tile.m.0.max(1), tile.m.1),
            _ => return false,
        };
        let across = tile.n.div_ceil(tile.block_n);
        let [x, y, z] = launch.blocks.map(u64::from);
        let meets = |low: u64, high: u64| low.max(rows.0) <= high.min(rows.1);
        // Numbers of rows that give `count` tiles downward.
        let down = |count: u64| count > 0 && meets((count - 1) * tile.block_m + 1, count * tile.block_m);
        match launch.part {
            Part::Mono => launch.workgroup == self.threads(tile) && y == 1 && z == 1 && x % across == 0 && down(x / across),
            Part::Partial => launch.workgroup == self.threads(tile) && x == across && z == tile.k.div_ceil(self.chunk_k) && down(y),
            Part::Reduce => {
                let least = (x.saturating_sub(1) * self.reduce.block + 1).div_ceil(tile.n);
                launch.workgroup == [self.reduce.threads, 1, 1] && y == 1 && z == 1 && x > 0 && meets(least, x * self.reduce.block / tile.n)
            }
        }
    }

    /// Routes that a dispatch can be of, in the order of the baseline, each once.
    #[must_use]
    pub fn routes(&self, launch: &Launch) -> Vec<&str> {
        let mut routes: Vec<&str> = Vec::new();
        for tile in self.tiles.iter().filter(|tile| self.needs(tile, launch)) {
            if !routes.contains(&tile.route.as_str()) {
                routes.push(&tile.route);
            }
        }
        routes
    }
}

#[cfg(test)]
mod tests {
    use super::super::documents::{Kernels, Reduce};
    use super::*;

    fn baseline() -> Baseline {
        let tile =
            |route: &str, n, k, m, block_m, block_n, num_warps| Tile { route: route.to_owned(), n, k, m, block_m, block_n, num_warps };
        Baseline {
            wavefront: 64,
            chunk_k: 1024,
            split_max_rows: 64,
            kernels: Kernels { mono: "mono".into(), partial: "partial".into(), reduce: "reduce".into() },
            reduce: Reduce { block: 1024, threads: 256 },
            tiles: vec![
                tile("qkv", 1536, 4096, (1, 8), 16, 32, 2),
                tile("qkv", 1536, 4096, (9, 64), 32, 64, 4),
                tile("qkv", 1536, 4096, (65, 1024), 128, 64, 4),
                tile("o_proj", 4096, 1024, (1, 64), 16, 32, 2),
            ],
            ..Baseline::default()
        }
    }

    #[test]
    fn a_product_of_few_rows_and_many_chunks_is_split_and_reduced() {
        let baseline = baseline();
        let tile = baseline.tile("qkv", 4, 1536, 4096).unwrap();
        // 1536 / 32 = 48 across, one tile down, 4096 / 1024 = 4 chunks; 4 * 1536 = 6144 sums of 1024 each are 6 workgroups.
        let partial = Launch { part: Part::Partial, workgroup: [128, 1, 1], blocks: [48, 1, 4] };
        let reduce = Launch { part: Part::Reduce, workgroup: [256, 1, 1], blocks: [6, 1, 1] };
        assert_eq!(baseline.launches(tile, 4), [partial, reduce]);
        assert_eq!(baseline.routes(&partial), ["qkv"]);
        assert_eq!(baseline.routes(&reduce), ["qkv"]);
        // One chunk is never split: 4096 / 32 = 128 tiles.
        let tile = baseline.tile("o_proj", 4, 4096, 1024).unwrap();
        assert_eq!(baseline.launches(tile, 4), [Launch { part: Part::Mono, workgroup: [128, 1, 1], blocks: [128, 1, 1] }]);
    }

    #[test]
    fn a_dispatch_is_of_a_route_only_if_a_declared_number_of_rows_gives_it() {
        let baseline = baseline();
        let launch = |part, threads, blocks| Launch { part, workgroup: [threads, 1, 1], blocks };
        // Rows 65..1024 on 128x64 tiles of four waves: 24 across, 1 to 8 down.
        assert_eq!(baseline.routes(&launch(Part::Mono, 256, [24, 1, 1])), ["qkv"]);
        assert_eq!(baseline.routes(&launch(Part::Mono, 256, [192, 1, 1])), ["qkv"]);
        for wrong in [
            launch(Part::Mono, 256, [216, 1, 1]),   // nine tiles down
            launch(Part::Mono, 256, [25, 1, 1]),    // no multiple of 24
            launch(Part::Mono, 128, [24, 1, 1]),    // two waves
            launch(Part::Mono, 256, [24, 2, 1]),    // a second row of workgroups
            launch(Part::Partial, 128, [48, 1, 3]), // a chunk is missing
            launch(Part::Partial, 128, [48, 2, 4]), // 17 rows have the other tile
            launch(Part::Reduce, 256, [97, 1, 1]),  // 64 rows need 96
            launch(Part::Reduce, 256, [0, 1, 1]),
            launch(Part::Reduce, 128, [6, 1, 1]),
        ] {
            assert_eq!(baseline.routes(&wrong), [""; 0], "{wrong:?}");
        }
        // 64 rows: 64 * 1536 / 1024 = 96; one row: 1.5, so 2.
        assert_eq!(baseline.routes(&launch(Part::Reduce, 256, [96, 1, 1])), ["qkv"]);
        assert_eq!(baseline.routes(&launch(Part::Reduce, 256, [2, 1, 1])), ["qkv"]);
        assert_eq!(baseline.routes(&launch(Part::Reduce, 256, [1, 1, 1])), [""; 0]);
        assert_eq!(baseline.routes(&launch(Part::Reduce, 256, [4, 1, 1])), [""; 0]);
    }
}
