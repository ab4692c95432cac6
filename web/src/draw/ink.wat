;; The inner loops of kernel.ts, which has them in TypeScript too. Made for the first picture of a page: they are
;; fast from the first line on, while JavaScript has to run a while before it is.
;; A strip is 32 columns of (red, green, blue, 1) · depth, a v128 a pixel, with 40 rows of margin above and below.
(module
  (memory (export "memory") 1)

  ;; Puts lines in order of their level, 1 to 40 by the opacity of their weight, those below zero first and downwards:
  ;; `from` and `to` again at `sorted_from` and `sorted_to`, and where each of 81 levels ends at `ends`. Left out are
  ;; weights too faint to see and lines with neither end in the rows from `first` to `last`. `levels`: a byte a line.
  (func (export "sort")
    (param $weight i32) (param $from i32) (param $to i32) (param $count i32) (param $first i32) (param $last i32)
    (param $levels i32) (param $ends i32) (param $sorted_from i32) (param $sorted_to i32)
    (local $at i32) (local $level i32) (local $place i32) (local $sum i32) (local $many i32) (local $rows i32)
    (local $one f32) (local $size f32)
    (local.set $rows (i32.sub (local.get $last) (local.get $first)))
    (memory.fill (local.get $ends) (i32.const 0) (i32.const 324))
    (block $counted
      (loop $next
        (br_if $counted (i32.ge_u (local.get $at) (local.get $count)))
        (local.set $place (i32.shl (local.get $at) (i32.const 2)))
        (local.set $one (f32.load (i32.add (local.get $weight) (local.get $place))))
        (local.set $size (f32.abs (local.get $one)))
        (local.set $level (i32.const 40))
        (if (i32.and
              (f32.ge (local.get $size) (f32.const 0.0010902723557))
              (i32.or
                (i32.le_u
                  (i32.sub (i32.load (i32.add (local.get $from) (local.get $place))) (local.get $first))
                  (local.get $rows))
                (i32.le_u
                  (i32.sub (i32.load (i32.add (local.get $to) (local.get $place))) (local.get $first))
                  (local.get $rows))))
          (then
            (local.set $size (f32.min (f32.const 1) (local.get $size)))
            (local.set $level
              (i32.trunc_sat_f32_s
                (f32.max
                  (f32.const 1)
                  (f32.add
                    (f32.const 0.5)
                    (f32.mul
                      (f32.const 40)
                      (f32.sqrt (f32.mul (local.get $size) (f32.sqrt (local.get $size)))))))))
            (if (f32.lt (local.get $one) (f32.const 0))
              (then (local.set $level (i32.sub (i32.const 0) (local.get $level)))))
            (local.set $level (i32.add (local.get $level) (i32.const 40)))
            (local.set $place (i32.add (local.get $ends) (i32.shl (local.get $level) (i32.const 2))))
            (i32.store (local.get $place) (i32.add (i32.load (local.get $place)) (i32.const 1)))))
        (i32.store8 (i32.add (local.get $levels) (local.get $at)) (local.get $level))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (local.set $at (i32.const 0))
    (loop $starts
      (local.set $place (i32.add (local.get $ends) (local.get $at)))
      (local.set $many (i32.load (local.get $place)))
      (i32.store (local.get $place) (local.get $sum))
      (local.set $sum (i32.add (local.get $sum) (local.get $many)))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $starts (i32.lt_u (local.get $at) (i32.const 324))))
    (local.set $at (i32.const 0))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $count)))
        (local.set $level (i32.load8_u (i32.add (local.get $levels) (local.get $at))))
        (if (i32.ne (local.get $level) (i32.const 40))
          (then
            (local.set $place (i32.add (local.get $ends) (i32.shl (local.get $level) (i32.const 2))))
            (local.set $sum (i32.load (local.get $place)))
            (i32.store (local.get $place) (i32.add (local.get $sum) (i32.const 1)))
            (local.set $sum (i32.shl (local.get $sum) (i32.const 2)))
            (local.set $place (i32.shl (local.get $at) (i32.const 2)))
            (i32.store
              (i32.add (local.get $sorted_from) (local.get $sum))
              (i32.load (i32.add (local.get $from) (local.get $place))))
            (i32.store
              (i32.add (local.get $sorted_to) (local.get $sum))
              (i32.load (i32.add (local.get $to) (local.get $place))))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))))

  ;; Adds `count` lines to the strip at `wet`; `from` and `to` point to their rows, u32 each.
  (func (export "lay")
    (param $wet i32) (param $from i32) (param $to i32) (param $count i32)
    (param $row f32) (param $lower f32) (param $thick f32)
    (param $red f32) (param $green f32) (param $blue f32) (param $depth f32)
    (param $left f32) (param $wide i32) (param $width f32) (param $height f32)
    (local $colour v128) (local $ink v128) (local $bit v128) (local $part v128)
    (local $y0 f32) (local $slope f32) (local $tall f32) (local $top f32) (local $bottom f32)
    (local $a f32) (local $b f32)
    (local $first i32) (local $last i32) (local $hairs i32) (local $hair i32)
    (local $y i32) (local $fall i32) (local $at i32) (local $end i32) (local $place i32)
    (local.set $colour
      (f32x4.mul
        (f32x4.splat (local.get $depth))
        (f32x4.replace_lane 3
          (f32x4.replace_lane 2 (f32x4.replace_lane 1 (f32x4.splat (local.get $red)) (local.get $green)) (local.get $blue))
          (f32.const 1))))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (local.set $y0
          (f32.add (f32.mul (f32.convert_i32_u (i32.load (local.get $from))) (local.get $row)) (local.get $lower)))
        (local.set $slope
          (f32.div
            (f32.sub
              (f32.add (f32.mul (f32.convert_i32_u (i32.load (local.get $to))) (local.get $row)) (local.get $lower))
              (local.get $y0))
            (local.get $width)))
        (local.set $from (i32.add (local.get $from) (i32.const 4)))
        (local.set $to (i32.add (local.get $to) (i32.const 4)))
        (local.set $tall
          (f32.min
            (f32.const 36)
            (f32.mul
              (local.get $thick)
              (f32.sqrt (f32.add (f32.const 1) (f32.mul (local.get $slope) (local.get $slope)))))))
        (local.set $top
          (f32.sub
            (f32.add (local.get $y0) (f32.mul (local.get $slope) (f32.add (local.get $left) (f32.const 0.5))))
            (f32.mul (local.get $tall) (f32.const 0.5))))
        (local.set $bottom
          (f32.add
            (local.get $top)
            (f32.mul (local.get $slope) (f32.convert_i32_s (i32.sub (local.get $wide) (i32.const 1))))))
        (local.set $first (i32.const 0))
        (local.set $last (local.get $wide))
        ;; Only the columns where it is in the picture.
        (if (i32.or
              (f32.le (f32.min (local.get $top) (local.get $bottom)) (f32.neg (local.get $tall)))
              (f32.ge (f32.max (local.get $top) (local.get $bottom)) (local.get $height)))
          (then
            (br_if $next (f32.eq (local.get $slope) (f32.const 0)))
            (local.set $a (f32.div (f32.sub (f32.neg (local.get $tall)) (local.get $top)) (local.get $slope)))
            (local.set $b (f32.div (f32.sub (local.get $height) (local.get $top)) (local.get $slope)))
            (local.set $first
              (i32.trunc_sat_f32_s (f32.max (f32.const 0) (f32.ceil (f32.min (local.get $a) (local.get $b))))))
            (local.set $last
              (i32.trunc_sat_f32_s
                (f32.min
                  (f32.convert_i32_s (local.get $wide))
                  (f32.add (f32.floor (f32.max (local.get $a) (local.get $b))) (f32.const 1)))))
            (br_if $next (i32.ge_s (local.get $first) (local.get $last)))))
        (local.set $top
          (f32.add
            (f32.add (local.get $top) (f32.mul (f32.convert_i32_s (local.get $first)) (local.get $slope)))
            (f32.const 40)))
        ;; Side by side as many hairs as fill the line, each shared by the two pixels it lies between. Their way down
        ;; is counted in 65536ths: turning a float into a number at every step takes twice as long.
        (local.set $hairs
          (i32.trunc_sat_f32_s (f32.max (f32.const 1) (f32.nearest (f32.sub (local.get $tall) (f32.const 0.25))))))
        (local.set $tall (f32.div (local.get $tall) (f32.convert_i32_s (local.get $hairs))))
        (local.set $ink (f32x4.mul (local.get $colour) (f32x4.splat (local.get $tall))))
        (local.set $bit (f32x4.mul (local.get $ink) (f32x4.splat (f32.const 0.0000152587890625))))
        (local.set $fall (i32.trunc_sat_f32_s (f32.mul (local.get $slope) (f32.const 65536))))
        (local.set $hair (i32.const 0))
        (local.set $end (i32.add (local.get $wet) (i32.shl (local.get $last) (i32.const 4))))
        (loop $beside
          (local.set $y
            (i32.trunc_sat_f32_s
              (f32.mul
                (f32.const 65536)
                (f32.sub
                  (f32.add
                    (local.get $top)
                    (f32.mul (f32.add (f32.convert_i32_s (local.get $hair)) (f32.const 0.5)) (local.get $tall)))
                  (f32.const 0.5)))))
          (local.set $at (i32.add (local.get $wet) (i32.shl (local.get $first) (i32.const 4))))
          (loop $column
            (local.set $place
              (i32.add (local.get $at) (i32.and (i32.shr_u (local.get $y) (i32.const 7)) (i32.const 0xfffffe00))))
            (local.set $part
              (f32x4.mul
                (local.get $bit)
                (f32x4.splat (f32.convert_i32_s (i32.and (local.get $y) (i32.const 0xffff))))))
            (v128.store
              (local.get $place)
              (f32x4.add (v128.load (local.get $place)) (f32x4.sub (local.get $ink) (local.get $part))))
            (v128.store offset=512
              (local.get $place)
              (f32x4.add (v128.load offset=512 (local.get $place)) (local.get $part)))
            (local.set $y (i32.add (local.get $y) (local.get $fall)))
            (local.set $at (i32.add (local.get $at) (i32.const 16)))
            (br_if $column (i32.lt_u (local.get $at) (local.get $end))))
          (local.set $hair (i32.add (local.get $hair) (i32.const 1)))
          (br_if $beside (i32.lt_s (local.get $hair) (local.get $hairs))))
        (br $next))))

  ;; `high` rows of the strip become pixels at `out`, `stride` bytes a row, with the haze at `haze`, which is half as
  ;; large, behind them; the strip is dry again. `alphas`: 1536 bytes, alpha by 256ths of depth.
  (func (export "develop")
    (param $wet i32) (param $haze i32) (param $high i32) (param $wide i32)
    (param $out i32) (param $stride i32) (param $alphas i32)
    (local $y i32) (local $x i32) (local $place i32) (local $behind i32) (local $pixel i32)
    (local $four v128) (local $depth f32)
    (block $done
      (loop $rows
        (br_if $done (i32.ge_s (local.get $y) (local.get $high)))
        (local.set $place (i32.add (local.get $wet) (i32.shl (i32.add (local.get $y) (i32.const 40)) (i32.const 9))))
        (local.set $behind
          (i32.add
            (local.get $haze)
            (i32.shl (i32.add (i32.shr_u (local.get $y) (i32.const 1)) (i32.const 40)) (i32.const 9))))
        (local.set $pixel (i32.add (local.get $out) (i32.mul (local.get $y) (local.get $stride))))
        (local.set $x (i32.const 0))
        (loop $columns
          (local.set $four
            (f32x4.add
              (v128.load (local.get $place))
              (v128.load
                (i32.add (local.get $behind) (i32.shl (i32.shr_u (local.get $x) (i32.const 1)) (i32.const 4))))))
          (local.set $depth (f32x4.extract_lane 3 (local.get $four)))
          (if (f32.gt (local.get $depth) (f32.const 0))
            (then
              (local.set $four
                (i32x4.trunc_sat_f32x4_s
                  (f32x4.add
                    (f32x4.div (local.get $four) (f32x4.splat (local.get $depth)))
                    (f32x4.splat (f32.const 0.5)))))
              (i32.store
                (local.get $pixel)
                (i32.or
                  (i32.or
                    (i32x4.extract_lane 0 (local.get $four))
                    (i32.shl (i32x4.extract_lane 1 (local.get $four)) (i32.const 8)))
                  (i32.or
                    (i32.shl (i32x4.extract_lane 2 (local.get $four)) (i32.const 16))
                    (i32.shl
                      (i32.load8_u
                        (i32.add
                          (local.get $alphas)
                          (i32.trunc_sat_f32_s
                            (f32.min (f32.const 1535) (f32.mul (local.get $depth) (f32.const 256))))))
                      (i32.const 24)))))
              (v128.store (local.get $place) (v128.const i32x4 0 0 0 0)))
            (else (i32.store (local.get $pixel) (i32.const 0))))
          (local.set $place (i32.add (local.get $place) (i32.const 16)))
          (local.set $pixel (i32.add (local.get $pixel) (i32.const 4)))
          (local.set $x (i32.add (local.get $x) (i32.const 1)))
          (br_if $columns (i32.lt_s (local.get $x) (local.get $wide))))
        (local.set $y (i32.add (local.get $y) (i32.const 1)))
        (br $rows)))))
