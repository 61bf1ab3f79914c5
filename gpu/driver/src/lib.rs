//! The functions of the CUDA driver that the crate `cust` calls, each forwarded to the driver's library.
//!
//! `cust` links to `libcuda`, and a program that is linked to a library does not start where the library is missing. Here
//! stand functions of the same names, so that nothing is missing when the program is linked; the library is opened when the
//! first of them is called. [`present`] says whether there is one.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use libloading::Library;

/// What a function returns where there is no driver: CUDA_ERROR_NOT_INITIALIZED.
const NOT_INITIALIZED: u32 = 3;

fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the driver's library may be loaded by any program; nothing of ours runs while it is.
            ["libcuda.so.1", "libcuda.so"].iter().find_map(|name| unsafe { Library::new(*name) }.ok())
        })
        .as_ref()
}

/// Whether a CUDA driver is installed.
pub fn present() -> bool {
    // The table keeps the functions in the program, whichever library a linker reads first.
    std::hint::black_box(functions());
    library().is_some()
}

/// The address of a function; none where the driver does not have it.
fn address(name: &str) -> Option<usize> {
    // SAFETY: only the address is taken, as a number. Who calls it knows the signature.
    unsafe { library()?.get::<*const ()>(name.as_bytes()) }.ok().map(|symbol| *symbol as usize)
}

/// Functions with as many arguments, each a number or an address of at most 64 bits.
macro_rules! forward {
    (@one $type:ty, ($($argument:ident),*), $name:ident) => {
        /// Forwarded to the driver.
        ///
        /// # Safety
        /// What the driver's documentation asks for.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the driver's names")]
        pub unsafe extern "C" fn $name($($argument: usize),*) -> u32 {
            static ADDRESS: OnceLock<Option<usize>> = OnceLock::new();
            let Some(address) = *ADDRESS.get_or_init(|| address(stringify!($name))) else { return NOT_INITIALIZED };
            // SAFETY: the driver's function of that name. Its arguments are as many numbers and addresses, which the 64-bit
            // calling conventions of Linux pass in whole registers and stack slots whatever their width; it returns a word.
            let function = unsafe { std::mem::transmute::<usize, $type>(address) };
            // SAFETY: the caller keeps the driver's rules.
            unsafe { function($($argument),*) }
        }
    };
    ($type:ty, $arguments:tt: $($name:ident)+) => {
        $( forward! { @one $type, $arguments, $name } )+
    };
}

forward! {
    unsafe extern "C" fn() -> u32, ():
    cuCtxSynchronize
}

forward! {
    unsafe extern "C" fn(usize) -> u32, (a):
    cuArrayDestroy cuCtxDestroy_v2 cuCtxGetCacheConfig cuCtxGetCurrent cuCtxGetDevice cuCtxGetFlags
    cuCtxGetSharedMemConfig cuCtxPopCurrent_v2 cuCtxPushCurrent_v2 cuCtxSetCacheConfig cuCtxSetCurrent
    cuCtxSetSharedMemConfig cuDestroyExternalMemory cuDeviceGetCount cuDevicePrimaryCtxRelease_v2
    cuDevicePrimaryCtxReset_v2 cuDriverGetVersion cuEventDestroy_v2 cuEventQuery cuEventSynchronize cuGraphDestroy
    cuInit cuLinkDestroy cuMemFreeHost cuMemFree_v2 cuMemcpy2D_v2 cuModuleUnload cuStreamDestroy_v2
    cuStreamSynchronize cuSurfObjectDestroy cuTexObjectDestroy
}

forward! {
    unsafe extern "C" fn(usize, usize) -> u32, (a, b):
    cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuCtxGetApiVersion cuCtxGetLimit cuCtxGetStreamPriorityRange
    cuCtxSetLimit cuDeviceGet cuDevicePrimaryCtxRetain cuDevicePrimaryCtxSetFlags_v2 cuDeviceTotalMem_v2 cuEventCreate
    cuEventRecord cuFuncSetCacheConfig cuFuncSetSharedMemConfig cuGetErrorString cuGraphCreate
    cuGraphKernelNodeGetParams cuGraphNodeGetType cuImportExternalMemory cuMemAllocHost_v2 cuMemAlloc_v2
    cuMemFreeAsync cuMemGetInfo_v2 cuModuleLoad cuModuleLoadData cuStreamGetFlags cuStreamGetPriority
    cuSurfObjectCreate cuSurfObjectGetResourceDesc cuTexObjectGetResourceDesc cuTexObjectGetResourceViewDesc
}

forward! {
    unsafe extern "C" fn(usize, usize, usize) -> u32, (a, b, c):
    cuCtxCreate_v2 cuDeviceGetAttribute cuDeviceGetName cuEventElapsedTime cuExternalMemoryGetMappedBuffer
    cuFuncGetAttribute cuGraphDebugDotPrint cuGraphGetNodes cuLaunchHostFunc cuLinkComplete cuMemAllocAsync
    cuMemAllocManaged cuMemcpyDtoD_v2 cuMemcpyDtoH_v2 cuMemcpyHtoD_v2 cuMemsetD16_v2 cuMemsetD32_v2 cuMemsetD8_v2
    cuModuleGetFunction cuStreamCreateWithPriority cuStreamWaitEvent
}

forward! {
    unsafe extern "C" fn(usize, usize, usize, usize) -> u32, (a, b, c, d):
    cuGraphGetEdges cuLinkCreate_v2 cuMemAdvise cuMemPrefetchAsync cuMemcpyAtoH_v2 cuMemcpyDtoDAsync_v2
    cuMemcpyDtoHAsync_v2 cuMemcpyHtoA_v2 cuMemcpyHtoDAsync_v2 cuMemsetD16Async cuMemsetD32Async cuMemsetD8Async
    cuModuleGetGlobal_v2 cuOccupancyAvailableDynamicSMemPerBlock cuOccupancyMaxActiveBlocksPerMultiprocessor
    cuTexObjectCreate
}

forward! {
    unsafe extern "C" fn(usize, usize, usize, usize, usize) -> u32, (a, b, c, d, e):
    cuGraphAddKernelNode cuModuleLoadDataEx
}

forward! {
    unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> u32, (a, b, c, d, e, f):
    cuOccupancyMaxPotentialBlockSize
}

forward! {
    unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> u32, (a, b, c, d, e, f, g, h):
    cuLinkAddData_v2
}

forward! {
    unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize, usize, usize, usize) -> u32, (a, b, c, d, e, f, g, h, i, j, k):
    cuLaunchKernel
}

/// All of them.
fn functions() -> [*const (); 105] {
    [
        cuArray3DCreate_v2 as *const (),
        cuArray3DGetDescriptor_v2 as *const (),
        cuArrayDestroy as *const (),
        cuCtxCreate_v2 as *const (),
        cuCtxDestroy_v2 as *const (),
        cuCtxGetApiVersion as *const (),
        cuCtxGetCacheConfig as *const (),
        cuCtxGetCurrent as *const (),
        cuCtxGetDevice as *const (),
        cuCtxGetFlags as *const (),
        cuCtxGetLimit as *const (),
        cuCtxGetSharedMemConfig as *const (),
        cuCtxGetStreamPriorityRange as *const (),
        cuCtxPopCurrent_v2 as *const (),
        cuCtxPushCurrent_v2 as *const (),
        cuCtxSetCacheConfig as *const (),
        cuCtxSetCurrent as *const (),
        cuCtxSetLimit as *const (),
        cuCtxSetSharedMemConfig as *const (),
        cuCtxSynchronize as *const (),
        cuDestroyExternalMemory as *const (),
        cuDeviceGet as *const (),
        cuDeviceGetAttribute as *const (),
        cuDeviceGetCount as *const (),
        cuDeviceGetName as *const (),
        cuDevicePrimaryCtxRelease_v2 as *const (),
        cuDevicePrimaryCtxReset_v2 as *const (),
        cuDevicePrimaryCtxRetain as *const (),
        cuDevicePrimaryCtxSetFlags_v2 as *const (),
        cuDeviceTotalMem_v2 as *const (),
        cuDriverGetVersion as *const (),
        cuEventCreate as *const (),
        cuEventDestroy_v2 as *const (),
        cuEventElapsedTime as *const (),
        cuEventQuery as *const (),
        cuEventRecord as *const (),
        cuEventSynchronize as *const (),
        cuExternalMemoryGetMappedBuffer as *const (),
        cuFuncGetAttribute as *const (),
        cuFuncSetCacheConfig as *const (),
        cuFuncSetSharedMemConfig as *const (),
        cuGetErrorString as *const (),
        cuGraphAddKernelNode as *const (),
        cuGraphCreate as *const (),
        cuGraphDebugDotPrint as *const (),
        cuGraphDestroy as *const (),
        cuGraphGetEdges as *const (),
        cuGraphGetNodes as *const (),
        cuGraphKernelNodeGetParams as *const (),
        cuGraphNodeGetType as *const (),
        cuImportExternalMemory as *const (),
        cuInit as *const (),
        cuLaunchHostFunc as *const (),
        cuLaunchKernel as *const (),
        cuLinkAddData_v2 as *const (),
        cuLinkComplete as *const (),
        cuLinkCreate_v2 as *const (),
        cuLinkDestroy as *const (),
        cuMemAdvise as *const (),
        cuMemAllocAsync as *const (),
        cuMemAllocHost_v2 as *const (),
        cuMemAllocManaged as *const (),
        cuMemAlloc_v2 as *const (),
        cuMemFreeAsync as *const (),
        cuMemFreeHost as *const (),
        cuMemFree_v2 as *const (),
        cuMemGetInfo_v2 as *const (),
        cuMemPrefetchAsync as *const (),
        cuMemcpy2D_v2 as *const (),
        cuMemcpyAtoH_v2 as *const (),
        cuMemcpyDtoDAsync_v2 as *const (),
        cuMemcpyDtoD_v2 as *const (),
        cuMemcpyDtoHAsync_v2 as *const (),
        cuMemcpyDtoH_v2 as *const (),
        cuMemcpyHtoA_v2 as *const (),
        cuMemcpyHtoDAsync_v2 as *const (),
        cuMemcpyHtoD_v2 as *const (),
        cuMemsetD16Async as *const (),
        cuMemsetD16_v2 as *const (),
        cuMemsetD32Async as *const (),
        cuMemsetD32_v2 as *const (),
        cuMemsetD8Async as *const (),
        cuMemsetD8_v2 as *const (),
        cuModuleGetFunction as *const (),
        cuModuleGetGlobal_v2 as *const (),
        cuModuleLoad as *const (),
        cuModuleLoadData as *const (),
        cuModuleLoadDataEx as *const (),
        cuModuleUnload as *const (),
        cuOccupancyAvailableDynamicSMemPerBlock as *const (),
        cuOccupancyMaxActiveBlocksPerMultiprocessor as *const (),
        cuOccupancyMaxPotentialBlockSize as *const (),
        cuStreamCreateWithPriority as *const (),
        cuStreamDestroy_v2 as *const (),
        cuStreamGetFlags as *const (),
        cuStreamGetPriority as *const (),
        cuStreamSynchronize as *const (),
        cuStreamWaitEvent as *const (),
        cuSurfObjectCreate as *const (),
        cuSurfObjectDestroy as *const (),
        cuSurfObjectGetResourceDesc as *const (),
        cuTexObjectCreate as *const (),
        cuTexObjectDestroy as *const (),
        cuTexObjectGetResourceDesc as *const (),
        cuTexObjectGetResourceViewDesc as *const (),
    ]
}
