! paths_fortran.f90: a Fortran routine between two of C, and one within itself.
module paths
  use iso_c_binding
  implicit none
  interface
    subroutine record() bind(C, name='record')
    end subroutine record
  end interface
contains
  recursive subroutine nested(n) bind(C, name='nested')
    integer(c_int), value :: n
    if (n > 0) then
      call nested(n - 1)
    else
      call record()
    end if
    call record()
  end subroutine nested
end module paths
