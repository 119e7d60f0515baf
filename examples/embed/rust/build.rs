//! Compiles the kernels into the program: for GPUs, or where NVIDIA's assembler is missing, for the CPU.

#![forbid(unsafe_code)]

fn main() {
    for file in ["../../softmax.tk", "../../matmul.tk"] {
        tk_build::Build::new(file).target("sm_90a").target("sm_80").or_cpu().compile();
    }
}
